// Enough of CUDA C for kernels without barriers: threads run one after the other on the host.
#pragma once

#define __device__
#define __global__

struct Dim3 {
    unsigned x = 1, y = 1, z = 1;
};
static thread_local Dim3 threadIdx, blockIdx, blockDim, gridDim;

static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}

template <class Kernel, class... Arguments>
void launch(unsigned blocks, unsigned threads, Kernel kernel, Arguments... arguments) {
    gridDim.x = blocks;
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) kernel(arguments...);
}
