"""Input pipelines: examples on their way from a source to batches, through queues and threads."""

from headrace_train.pipelines.batching import batch as batch
from headrace_train.pipelines.batching import batch_join as batch_join
from headrace_train.pipelines.batching import maybe_batch as maybe_batch
from headrace_train.pipelines.batching import maybe_batch_join as maybe_batch_join
from headrace_train.pipelines.bucketing import bucket as bucket
from headrace_train.pipelines.bucketing import (
    bucket_by_sequence_length as bucket_by_sequence_length,
)
from headrace_train.pipelines.producers import input_producer as input_producer
from headrace_train.pipelines.producers import limit_epochs as limit_epochs
from headrace_train.pipelines.producers import range_input_producer as range_input_producer
from headrace_train.pipelines.producers import slice_input_producer as slice_input_producer
from headrace_train.pipelines.producers import string_input_producer as string_input_producer
from headrace_train.pipelines.shuffling import maybe_shuffle_batch as maybe_shuffle_batch
from headrace_train.pipelines.shuffling import maybe_shuffle_batch_join as maybe_shuffle_batch_join
from headrace_train.pipelines.shuffling import shuffle_batch as shuffle_batch
from headrace_train.pipelines.shuffling import shuffle_batch_join as shuffle_batch_join
