// Philox4x64-10, a counter-based generator of random bits (Salmon et al., SC 2011).
//
// Word i of the output is word i of numpy.random.Philox(key=key, counter=counter).random_raw().
// Needs no header, so that it compiles in milliseconds.

typedef unsigned long long word;

__device__ inline void philox_round(word *c, word k0, word k1) {
    const word m0 = 0xD2E7470EE14C6C93ull, m1 = 0xCA5A826395121157ull;
    word high0 = __umul64hi(m0, c[0]), low0 = m0 * c[0];
    word high1 = __umul64hi(m1, c[2]), low1 = m1 * c[2];
    c[0] = high1 ^ c[1] ^ k0;
    c[1] = low1;
    c[2] = high0 ^ c[3] ^ k1;
    c[3] = low0;
}

// Fills out[0..count) from the counter that starts at c3:c2:c1:c0; one thread makes four words.
extern "C" __global__ void philox(word *out, word count, word k0, word k1, word c0, word c1,
                                  word c2, word c3) {
    const word weyl0 = 0x9E3779B97F4A7C15ull, weyl1 = 0xBB67AE8584CAA73Bull;
    const word step = (word)gridDim.x * blockDim.x;
    const word blocks = count / 4 + (count % 4 != 0);
    for (word i = (word)blockIdx.x * blockDim.x + threadIdx.x; i < blocks; i += step) {
        // NumPy counts up before it makes the first block. A carry ripples through all words.
        word c[4] = {c0 + i + 1, c1, c2, c3};
        if (c[0] <= i) {
            if (++c[1] == 0 && ++c[2] == 0) ++c[3];
        }
        word r0 = k0, r1 = k1;
#pragma unroll
        for (int round = 0; round < 10; ++round) {
            philox_round(c, r0, r1);
            r0 += weyl0;
            r1 += weyl1;
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            if (4 * i + j < count) out[4 * i + j] = c[j];
        }
    }
}
