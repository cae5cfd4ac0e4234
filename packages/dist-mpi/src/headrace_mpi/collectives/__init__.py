"""Collectives: what all ranks of a group compute together in one step.

====================== ==========================================================================
``functions``          what programs call: ``hr.dist.all_reduce`` and so on
``optimizer``          ``hr.dist.DistributedOptimizer``
``broadcasting``       variables that start alike on all ranks
``factors``            the pass that finds sums of products
``planning``           the pass that orders, packs and describes the collectives of a step
``groups``             which ranks take part in the collectives of this process
``group``              the steps of a group, one after the other, and the frames between its ranks
``group_step``         one step of a group: its exchanges, and how it fails
``algorithms``         what the ranks send each other in each collective
``products``           sums of products, of which the factors travel
``values``             what an algorithm sees of the group, and of what other ranks give
``checks``             what the ranks give has to fit together
``parts``              values of other ranks: arrived, or read from their memory when needed
``reduction_buffers``  memory in which the ranks of one host make a sum together
``reduction``          sums, means, minima and maxima, in the order of the ranks
``buffers``            memory for results, used again
====================== ==========================================================================
"""
