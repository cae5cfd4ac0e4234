# ruff: noqa: E501 - calls stand in one line each
"""What TensorFlow 1.15.5 calls the results of calls that give no name.

Each line is a call, with the library as ``T``, and the name of the (first) tensor or operation
that it returns in a new graph that holds what ``INPUTS`` makes. They were written down from a run
of TensorFlow 1.15.5 under Python 3.7.
"""

INPUTS = """
a = T.constant([1.0, 2.0, 3.0], name="in_a")
i = T.constant([1, 2, 3], name="in_i")
b = T.constant([True, False, True], name="in_b")
bs = T.constant(True, name="in_bs")
m = T.constant([[2.0, 0.0], [0.0, 2.0]], name="in_m")
m3 = T.constant(1.0, shape=[2, 2, 2], name="in_m3")
d = T.constant([1.0, 2.0], name="in_d")
k = T.constant([1.0, 2.0, 3.0], name="in_k")
im = T.constant(1.0, shape=[1, 4, 4, 3], name="in_im")
f = T.constant(1.0, shape=[1, 1, 3, 3], name="in_f")
ph = T.placeholder(T.float32, name="in_ph")
v = T.Variable(1.0, name="in_v")
vv = T.Variable([1.0, 2.0], name="in_vv")
"""

NAMES = """
a + a -> add:0
a - a -> sub:0
a * a -> mul:0
a / a -> truediv:0
a // a -> floordiv:0
a % a -> mod:0
a ** a -> pow:0
-a -> Neg:0
1.0 + a -> add:0
1.0 - a -> sub:0
2.0 * a -> mul:0
2.0 / a -> truediv:0
abs(a) -> Abs:0
a < a -> Less:0
a <= a -> LessEqual:0
a > a -> Greater:0
a >= a -> GreaterEqual:0
b & b -> and:0
b | b -> or:0
b ^ b -> xor:0
~b -> LogicalNot:0
m @ m -> matmul:0
a[0] -> strided_slice:0
m[0:1, 1] -> strided_slice:0
T.add(a, a) -> Add:0
T.subtract(a, a) -> Sub:0
T.multiply(a, a) -> Mul:0
T.divide(a, a) -> truediv:0
T.div(a, a) -> div:0
T.truediv(a, a) -> truediv:0
T.floordiv(a, a) -> floordiv:0
T.mod(a, a) -> FloorMod:0
T.floormod(a, a) -> FloorMod:0
T.realdiv(a, a) -> RealDiv:0
T.truncatediv(i, i) -> TruncateDiv:0
T.truncatemod(i, i) -> TruncateMod:0
T.pow(a, a) -> Pow:0
T.abs(a) -> Abs:0
T.negative(a) -> Neg:0
T.sign(a) -> Sign:0
T.square(a) -> Square:0
T.sqrt(a) -> Sqrt:0
T.rsqrt(a) -> Rsqrt:0
T.exp(a) -> Exp:0
T.log(a) -> Log:0
T.log1p(a) -> Log1p:0
T.expm1(a) -> Expm1:0
T.sin(a) -> Sin:0
T.cos(a) -> Cos:0
T.tan(a) -> Tan:0
T.asin(a) -> Asin:0
T.acos(a) -> Acos:0
T.atan(a) -> Atan:0
T.sinh(a) -> Sinh:0
T.cosh(a) -> Cosh:0
T.tanh(a) -> Tanh:0
T.asinh(a) -> Asinh:0
T.acosh(a) -> Acosh:0
T.atanh(a) -> Atanh:0
T.atan2(a, a) -> Atan2:0
T.sigmoid(a) -> Sigmoid:0
T.erf(a) -> Erf:0
T.erfc(a) -> Erfc:0
T.lgamma(a) -> Lgamma:0
T.digamma(a) -> Digamma:0
T.igamma(a, a) -> Igamma:0
T.igammac(a, a) -> Igammac:0
T.zeta(a, a) -> Zeta:0
T.polygamma(a, a) -> Polygamma:0
T.betainc(a, a, a) -> Betainc:0
T.lbeta(m) -> lbeta/sub:0
T.reciprocal(a) -> Reciprocal:0
T.floor(a) -> Floor:0
T.ceil(a) -> Ceil:0
T.round(a) -> Round:0
T.rint(a) -> Rint:0
T.maximum(a, a) -> Maximum:0
T.minimum(a, a) -> Minimum:0
T.squared_difference(a, a) -> SquaredDifference:0
T.equal(a, a) -> Equal:0
T.not_equal(a, a) -> NotEqual:0
T.less(a, a) -> Less:0
T.less_equal(a, a) -> LessEqual:0
T.greater(a, a) -> Greater:0
T.greater_equal(a, a) -> GreaterEqual:0
T.logical_and(b, b) -> LogicalAnd:0
T.logical_or(b, b) -> LogicalOr:0
T.logical_not(b) -> LogicalNot:0
T.logical_xor(b, b) -> LogicalXor:0
T.where(b) -> Where:0
T.where(b, a, a) -> Select:0
T.cast(a, T.int32) -> Cast:0
T.to_float(i) -> ToFloat:0
T.to_int32(a) -> ToInt32:0
T.to_int64(a) -> ToInt64:0
T.to_double(a) -> ToDouble:0
T.bitcast(a, T.int32) -> Bitcast:0
T.saturate_cast(a, T.int32) -> saturate_cast:0
T.identity(a) -> Identity:0
T.stop_gradient(a) -> StopGradient:0
T.no_op() -> NoOp
T.group(a.op) -> group_deps
T.constant(1.0) -> Const:0
T.zeros([2]) -> zeros:0
T.ones([2]) -> ones:0
T.zeros_like(a) -> zeros_like:0
T.ones_like(a) -> ones_like:0
T.fill([2], 1.0) -> Fill:0
T.range(3) -> range:0
T.linspace(0.0, 1.0, 3) -> LinSpace:0
T.placeholder(T.float32) -> Placeholder:0
T.placeholder_with_default(a, [3]) -> PlaceholderWithDefault:0
T.Variable(1.0) -> Variable:0
T.get_variable('gv', [2]) -> gv:0
T.get_variable('gv2', [2]).initializer -> gv2/Assign
T.reduce_sum(a) -> Sum:0
T.reduce_mean(a) -> Mean:0
T.reduce_prod(a) -> Prod:0
T.reduce_max(a) -> Max:0
T.reduce_min(a) -> Min:0
T.reduce_all(b) -> All:0
T.reduce_any(b) -> Any:0
T.reduce_sum(m, 1) -> Sum:0
T.count_nonzero(a) -> count_nonzero/Sum:0
T.argmax(a) -> ArgMax:0
T.argmin(a) -> ArgMin:0
T.cumsum(a) -> Cumsum:0
T.cumprod(a) -> Cumprod:0
T.add_n([a, a]) -> AddN:0
T.accumulate_n([a, a]) -> AccumulateNV2:0
T.matmul(m, m) -> MatMul:0
T.matmul(m3, m3) -> MatMul:0
T.tensordot(m, m, 1) -> Tensordot:0
T.einsum('ij,jk->ik', m, m) -> einsum/MatMul:0
T.transpose(m) -> transpose:0
T.matrix_transpose(m) -> matrix_transpose/transpose:0
T.trace(m) -> Trace:0
T.diag(a) -> Diag:0
T.diag_part(m) -> DiagPart:0
T.matrix_diag(a) -> diag:0
T.matrix_diag_part(m) -> diag_part:0
T.matrix_set_diag(m, d) -> set_diag:0
T.matrix_band_part(m, 0, 0) -> MatrixBandPart:0
T.matrix_inverse(m) -> MatrixInverse:0
T.matrix_determinant(m) -> MatrixDeterminant:0
T.matrix_solve(m, m) -> MatrixSolve:0
T.matrix_triangular_solve(m, m) -> MatrixTriangularSolve:0
T.cholesky(m) -> Cholesky:0
T.qr(m) -> Qr:0
T.svd(m) -> Svd:0
T.self_adjoint_eig(m) -> SelfAdjointEigV2:0
T.reshape(a, [3, 1]) -> Reshape:0
T.expand_dims(a, 0) -> ExpandDims:0
T.squeeze(T.placeholder(T.float32, [1, 3], name='sq')) -> Squeeze:0
T.shape(a) -> Shape:0
T.size(a) -> Size:0
T.rank(a) -> Rank:0
T.shape(ph) -> Shape:0
T.size(ph) -> Size:0
T.rank(ph) -> Rank:0
T.concat([a, a], 0) -> concat:0
T.stack([a, a]) -> stack:0
T.unstack(a) -> unstack:0
T.split(a, 3) -> split:0
T.split(a, [1, 2]) -> split:0
T.slice(a, [0], [1]) -> Slice:0
T.strided_slice(a, [0], [1]) -> StridedSlice:0
T.gather(a, [0]) -> GatherV2:0
T.gather_nd(a, [[0]]) -> GatherNd:0
T.scatter_nd([[0]], [1.0], [3]) -> ScatterNd:0
T.one_hot([0], 3) -> one_hot:0
T.pad(a, [[1, 1]]) -> Pad:0
T.tile(a, [2]) -> Tile:0
T.reverse(a, [0]) -> ReverseV2:0
T.reverse_sequence(m, [1, 1], seq_axis=1, batch_axis=0) -> ReverseSequence:0
T.boolean_mask(a, b) -> boolean_mask/GatherV2:0
T.unique(i) -> Unique:0
T.setdiff1d(i, i) -> ListDiff:0
T.invert_permutation([0, 1]) -> InvertPermutation:0
T.dynamic_partition(a, [0, 0, 1], 2) -> DynamicPartition:0
T.dynamic_stitch([[0]], [[1.0]]) -> DynamicStitch:0
T.segment_sum(a, [0, 0, 1]) -> SegmentSum:0
T.segment_mean(a, [0, 0, 1]) -> SegmentMean:0
T.unsorted_segment_sum(a, [0, 0, 1], 2) -> UnsortedSegmentSum:0
T.sparse_segment_sum(a, [0], [0]) -> SparseSegmentSum:0
T.clip_by_value(a, 0.0, 1.0) -> clip_by_value:0
T.clip_by_norm(a, 1.0) -> clip_by_norm:0
T.clip_by_average_norm(a, 1.0) -> clip_by_average_norm:0
T.global_norm([a]) -> global_norm/global_norm:0
T.sequence_mask([1, 2]) -> SequenceMask/Less:0
T.broadcast_to(a, [2, 3]) -> BroadcastTo:0
T.broadcast_dynamic_shape([2], [2]) -> BroadcastArgs:0
T.check_numerics(a, 'x') -> CheckNumerics:0
T.add_check_numerics_ops() -> group_deps
T.Print(a, [a]) -> Print:0
T.random_uniform([2]) -> random_uniform:0
T.random_normal([2]) -> random_normal:0
T.truncated_normal([2]) -> truncated_normal:0
T.random_shuffle(a) -> RandomShuffle:0
T.random_gamma([2], 1.0) -> random_gamma/Maximum:0
T.multinomial(m, 1) -> multinomial/Multinomial:0
T.random_crop(a, [2]) -> random_crop:0
T.py_func(lambda x: x, [a], T.float32) -> PyFunc:0
T.nn.relu(a) -> Relu:0
T.nn.relu6(a) -> Relu6:0
T.nn.elu(a) -> Elu:0
T.nn.selu(a) -> Selu:0
T.nn.leaky_relu(a) -> LeakyRelu:0
T.nn.softplus(a) -> Softplus:0
T.nn.softsign(a) -> Softsign:0
T.nn.sigmoid(a) -> Sigmoid:0
T.nn.tanh(a) -> Tanh:0
T.nn.crelu(a) -> CRelu/Relu:0
T.nn.softmax(m) -> Softmax:0
T.nn.log_softmax(m) -> LogSoftmax:0
T.nn.dropout(a, 0.5) -> dropout/mul_1:0
T.nn.bias_add(m, d) -> BiasAdd:0
T.nn.l2_loss(a) -> L2Loss:0
T.nn.l2_normalize(a, 0) -> l2_normalize:0
T.nn.lrn(im) -> LRN:0
T.nn.conv2d(im, f, strides=[1, 1, 1, 1], padding='SAME') -> Conv2D:0
T.nn.conv2d_transpose(im, f, [1, 4, 4, 3], [1, 1, 1, 1]) -> conv2d_transpose:0
T.nn.depthwise_conv2d(im, f, [1, 1, 1, 1], 'SAME') -> depthwise:0
T.nn.separable_conv2d(im, f, T.constant(1.0, shape=[1, 1, 9, 2]), [1, 1, 1, 1], 'SAME') -> separable_conv2d:0
T.nn.conv1d(T.constant(1.0, shape=[1, 4, 3]), T.constant(1.0, shape=[1, 3, 3]), 1, 'SAME') -> conv1d/Squeeze:0
T.nn.max_pool(im, [1, 2, 2, 1], [1, 1, 1, 1], 'SAME') -> MaxPool:0
T.nn.avg_pool(im, [1, 2, 2, 1], [1, 1, 1, 1], 'SAME') -> AvgPool:0
T.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1], logits=m) -> SparseSoftmaxCrossEntropyWithLogits/SparseSoftmaxCrossEntropyWithLogits:0
T.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1], logits=m, name="nm") -> nm/nm:0
T.nn.softmax_cross_entropy_with_logits_v2(labels=m, logits=m) -> softmax_cross_entropy_with_logits/Reshape_2:0
T.nn.softmax_cross_entropy_with_logits(labels=m, logits=m) -> softmax_cross_entropy_with_logits_sg/Reshape_2:0
T.meshgrid([1, 2], [3, 4, 5])[1] -> meshgrid/mul_1:0
T.meshgrid([1, 2], name="nm")[0] -> nm/mul:0
T.batch_scatter_update(T.get_variable("bsu", [2, 1]), [[0], [0]], [[1.0], [1.0]]) -> ScatterNdUpdate:0
T.metrics.true_positives_at_thresholds(b, a / 4.0, [0.1])[0] -> true_positives/Identity:0
T.metrics.mean_iou(i, i, 4)[0] -> mean_iou/Select_1:0
T.parse_example(["a"], {"x": T.FixedLenFeature([], T.float32)}, name="nm")["x"] -> nm/nm:0
T.parse_single_example("a", {"x": T.FixedLenFeature([], T.float32)})["x"] -> ParseSingleExample/ParseSingleExample:0
T.nn.sigmoid_cross_entropy_with_logits(labels=a, logits=a) -> logistic_loss:0
T.nn.weighted_cross_entropy_with_logits(a, a, 1.0) -> logistic_loss:0
T.nn.embedding_lookup(m, [0]) -> embedding_lookup/Identity:0
T.nn.top_k(a, 2)[0] -> TopKV2:0
T.nn.xw_plus_b(m, m, d) -> xw_plus_b:0
T.nn.relu_layer(m, m, d) -> relu_layer:0
T.nn.zero_fraction(a) -> zero_fraction/fraction:0
T.nn.log_poisson_loss(a, a) -> log_poisson_loss/sub:0
T.losses.mean_squared_error(a, a) -> mean_squared_error/value:0
T.losses.softmax_cross_entropy(m, m) -> softmax_cross_entropy_loss/value:0
T.losses.sparse_softmax_cross_entropy([0, 1], m) -> sparse_softmax_cross_entropy_loss/value:0
T.losses.absolute_difference(a, a) -> absolute_difference/value:0
T.assign(v, 1.0) -> Assign:0
T.assign_add(v, 1.0) -> AssignAdd:0
T.assign_sub(v, 1.0) -> AssignSub:0
T.scatter_update(vv, [0], [1.0]) -> ScatterUpdate:0
T.scatter_add(vv, [0], [1.0]) -> ScatterAdd:0
v.assign(2.0) -> Assign:0
v.assign_add(2.0) -> AssignAdd:0
v.initializer -> in_v/Assign
v.op -> in_v
v + 1.0 -> add:0
T.global_variables_initializer() -> init
T.local_variables_initializer() -> init
T.report_uninitialized_variables() -> report_uninitialized_variables/boolean_mask/GatherV2:0
T.is_variable_initialized(v) -> IsVariableInitialized:0
T.train.get_or_create_global_step() -> global_step:0
T.string_join(['a', 'b']) -> StringJoin:0
T.string_split(['a b']) -> StringSplit/StringSplit:1
T.as_string(a) -> AsString:0
T.string_to_number(['1']) -> StringToNumber:0
T.substr(['ab'], 0, 1) -> Substr:0
T.encode_base64(['a']) -> EncodeBase64:0
T.string_to_hash_bucket_fast(['a'], 3) -> StringToHashBucketFast:0
T.convert_to_tensor(2.0) -> Const:0
T.complex(a, a) -> Complex:0
T.real(T.complex(a, a)) -> Real:0
T.imag(T.complex(a, a)) -> Imag:0
T.conj(T.complex(a, a)) -> Conj:0
T.angle(T.complex(a, a)) -> Angle:0
T.space_to_depth(im, 2) -> SpaceToDepth:0
T.depth_to_space(T.constant(1.0, shape=[1, 2, 2, 4]), 2) -> DepthToSpace:0
T.space_to_batch(im, [[0, 0], [0, 0]], 2) -> SpaceToBatchND:0
T.batch_to_space(T.constant(1.0, shape=[4, 2, 2, 1]), [[0, 0], [0, 0]], 2) -> BatchToSpaceND:0
T.space_to_batch_nd(im, [2, 2], [[0, 0], [0, 0]]) -> SpaceToBatchND:0
T.extract_image_patches(im, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], 'VALID') -> ExtractImagePatches:0
T.histogram_fixed_width(a, [0.0, 1.0]) -> histogram_fixed_width:0
T.image.flip_left_right(im) -> flip_left_right/ReverseV2:0
T.image.adjust_brightness(im, 0.1) -> adjust_brightness/Identity:0
T.image.rgb_to_grayscale(im) -> rgb_to_grayscale:0
T.image.convert_image_dtype(im, T.uint8) -> convert_image:0
T.SparseTensor([[0]], [1.0], [2]).values -> SparseTensor/values:0
T.sparse_tensor_to_dense(T.SparseTensor([[0]], [1.0], [2])) -> SparseToDense:0
"""
