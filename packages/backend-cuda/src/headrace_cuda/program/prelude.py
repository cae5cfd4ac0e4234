"""What every generated kernel may use: functions of numbers, and folds over the threads of a block.

It is CUDA C++ that a C++ compiler of the host takes as well, with the few words of CUDA defined as
``headrace_cuda.testing.host_compiler`` does.
"""

from __future__ import annotations

PRELUDE = r"""
typedef unsigned char uint8;
typedef long long int64;

template <class T> __device__ inline T hr_infinity();
template <> __device__ inline float hr_infinity<float>() {
    union { unsigned bits; float number; } both = {0x7f800000u};
    return both.number;
}
template <> __device__ inline double hr_infinity<double>() {
    union { unsigned long long bits; double number; } both = {0x7ff0000000000000ull};
    return both.number;
}
template <class T> __device__ inline T hr_nan() { return hr_infinity<T>() - hr_infinity<T>(); }

// Whole numbers wrap around, which signed ones of C++ do not promise.
__device__ inline int hr_add(int x, int y) { return (int)((unsigned)x + (unsigned)y); }
__device__ inline int64 hr_add(int64 x, int64 y) {
    return (int64)((unsigned long long)x + (unsigned long long)y);
}
__device__ inline uint8 hr_add(uint8 x, uint8 y) { return (uint8)(x + y); }
__device__ inline float hr_add(float x, float y) { return x + y; }
__device__ inline double hr_add(double x, double y) { return x + y; }
__device__ inline int hr_subtract(int x, int y) { return (int)((unsigned)x - (unsigned)y); }
__device__ inline int64 hr_subtract(int64 x, int64 y) {
    return (int64)((unsigned long long)x - (unsigned long long)y);
}
__device__ inline uint8 hr_subtract(uint8 x, uint8 y) { return (uint8)(x - y); }
__device__ inline float hr_subtract(float x, float y) { return x - y; }
__device__ inline double hr_subtract(double x, double y) { return x - y; }
__device__ inline int hr_multiply(int x, int y) { return (int)((unsigned)x * (unsigned)y); }
__device__ inline int64 hr_multiply(int64 x, int64 y) {
    return (int64)((unsigned long long)x * (unsigned long long)y);
}
__device__ inline uint8 hr_multiply(uint8 x, uint8 y) { return (uint8)(x * y); }
__device__ inline float hr_multiply(float x, float y) { return x * y; }
__device__ inline double hr_multiply(double x, double y) { return x * y; }
__device__ inline int hr_negative(int x) { return hr_subtract(0, x); }
__device__ inline int64 hr_negative(int64 x) { return hr_subtract((int64)0, x); }
__device__ inline float hr_negative(float x) { return -x; }
__device__ inline double hr_negative(double x) { return -x; }
__device__ inline int hr_abs(int x) { return x < 0 ? hr_negative(x) : x; }
__device__ inline int64 hr_abs(int64 x) { return x < 0 ? hr_negative(x) : x; }
__device__ inline float hr_abs(float x) { return fabsf(x); }
__device__ inline double hr_abs(double x) { return fabs(x); }

// NaN stays, as in NumPy.
template <class T> __device__ inline T hr_maximum(T x, T y) {
    return x != x ? x : x >= y ? x : y;
}
template <class T> __device__ inline T hr_minimum(T x, T y) {
    return x != x ? x : x <= y ? x : y;
}

template <class T> __device__ inline T hr_left_shift(T x, T count) {
    const T most = (T)(sizeof(T) * 8 - 1);
    count = count < (T)0 ? (T)0 : count > most ? most : count;
    return (T)((unsigned long long)x << count);
}
template <class T> __device__ inline T hr_right_shift(T x, T count) {
    const T most = (T)(sizeof(T) * 8 - 1);
    count = count < (T)0 ? (T)0 : count > most ? most : count;
    return (T)(x >> count);
}

__device__ inline float hr_sigmoid(float x) {
    const float decay = expf(-fabsf(x));
    return (x >= 0.0f ? 1.0f : x != x ? x : decay) / (decay + 1.0f);
}
__device__ inline double hr_sigmoid(double x) {
    const double decay = exp(-fabs(x));
    return (x >= 0.0 ? 1.0 : x != x ? x : decay) / (decay + 1.0);
}

struct Total {
    template <class T> __device__ T operator()(T x, T y) const { return hr_add(x, y); }
};
struct Product {
    template <class T> __device__ T operator()(T x, T y) const { return hr_multiply(x, y); }
};
struct Largest {
    template <class T> __device__ T operator()(T x, T y) const { return x > y || x != x ? x : y; }
};
struct Smallest {
    template <class T> __device__ T operator()(T x, T y) const { return x < y || x != x ? x : y; }
};
struct Both { template <class T> __device__ T operator()(T x, T y) const { return x && y; } };
struct Either { template <class T> __device__ T operator()(T x, T y) const { return x || y; } };

// Threads of a block as rows and columns: one of ``across`` in row ``down``.
template <int Across> struct Threads {
    static __device__ inline int x() { return (int)threadIdx.x % Across; }
    static __device__ inline int y() { return (int)threadIdx.x / Across; }
};

// Folds a number of each thread over the threads of its row, a power of two of them; all threads of
// the block must come. The order is the same in every run.
template <class F, int Across, class T> __device__ inline T hr_fold_row(T x, T *shared) {
    T *const mine = shared + threadIdx.x;
    const int place = Threads<Across>::x();
    *mine = x;
    __syncthreads();
    for (int n = Across / 2; n > 0; n /= 2) {
        if (place < n) *mine = F()(*mine, mine[n]);
        __syncthreads();
    }
    x = mine[-place];
    __syncthreads();
    return x;
}

// The same over the threads of a column, a power of two of them.
template <class F, int Across, int Down, class T>
__device__ inline T hr_fold_column(T x, T *shared) {
    T *const mine = shared + threadIdx.x;
    *mine = x;
    __syncthreads();
    for (int n = Down / 2; n > 0; n /= 2) {
        if (Threads<Across>::y() < n) *mine = F()(*mine, mine[n * Across]);
        __syncthreads();
    }
    x = shared[Threads<Across>::x()];
    __syncthreads();
    return x;
}
"""
