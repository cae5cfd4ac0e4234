// The functions of cublasLt that Headrace calls, on memory of the host, for float32 and float64.
//
// Written from cublasLt.h: matrices lie by columns, attributes have the numbers and sizes of the
// header, and what is asked for with another size is refused. The environment says what fails.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };

struct Object {
    std::map<int, std::vector<char>> attributes;
    template <class T> T get(int attribute, T otherwise) const {
        auto found = attributes.find(attribute);
        if (found == attributes.end()) return otherwise;
        T value;
        memcpy(&value, found->second.data(), sizeof value);
        return value;
    }
    template <class T> void put(int attribute, T value) {
        const char *bytes = (const char *)&value;
        attributes[attribute] = std::vector<char>(bytes, bytes + sizeof value);
    }
    int set(const std::map<int, size_t> &sizes, int attribute, const void *value, size_t size) {
        auto known = sizes.find(attribute);
        if (known == sizes.end() || known->second != size) return INVALID_VALUE;
        attributes[attribute] = std::vector<char>((const char *)value, (const char *)value + size);
        return SUCCESS;
    }
};

struct Algorithm { uint64_t data[8]; };
struct Result {
    Algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};
static_assert(sizeof(Result) == 96, "as in the header");

static int alive = 0;

static bool is_set(const char *name) { return getenv(name) != nullptr; }
static int make(void **out) { *out = new Object(); ++alive; return SUCCESS; }
static int destroy(void *object) { delete (Object *)object; --alive; return SUCCESS; }

template <class T>
static void multiply(const Object &op, T alpha, const T *a, const Object &la, const T *b,
                     const Object &lb, T beta, const T *c, const Object &lc, T *d, const Object &ld) {
    const bool ta = op.get<int32_t>(3, 0) == 1, tb = op.get<int32_t>(4, 0) == 1;
    const uint32_t epilogue = op.get<uint32_t>(7, 1);
    const T *bias = (const T *)op.get<uint64_t>(8, 0);
    const int64_t m = ld.get<uint64_t>(2, 0), n = ld.get<uint64_t>(3, 0);
    const int64_t k = ta ? la.get<uint64_t>(2, 0) : la.get<uint64_t>(3, 0);
    auto step = [](const Object &layout) { return layout.get<int64_t>(6, 0); };
    auto lead = [](const Object &layout) { return layout.get<int64_t>(4, 0); };
    for (int64_t batch = 0; batch < ld.get<int32_t>(5, 1); ++batch)
        for (int64_t j = 0; j < n; ++j)
            for (int64_t i = 0; i < m; ++i) {
                T sum = 0;
                for (int64_t p = 0; p < k; ++p) {
                    const T x = a[batch * step(la) + (ta ? i * lead(la) + p : p * lead(la) + i)];
                    const T y = b[batch * step(lb) + (tb ? p * lead(lb) + j : j * lead(lb) + p)];
                    sum += x * y;
                }
                sum *= alpha;
                if (beta != 0) sum += beta * c[batch * step(lc) + j * lead(lc) + i];
                if (epilogue & 4) sum += bias[i];
                if ((epilogue & 2) && sum < 0) sum = 0;
                d[batch * step(ld) + j * lead(ld) + i] = sum;
            }
}

extern "C" {
int headrace_alive() { return alive; }
size_t cublasLtGetVersion() { return 130100; }
const char *cublasLtGetStatusName(int status) {
    return status == INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE" : "CUBLAS_STATUS_OTHER";
}
int cublasLtCreate(void **handle) {
    if (is_set("FAKE_LT_CREATE")) return NOT_INITIALIZED;
    *handle = (void *)0x1234;
    return SUCCESS;
}
int cublasLtMatmulDescCreate(void **out, int compute, int scale) {
    make(out);
    ((Object *)*out)->put<int32_t>(0, compute);
    ((Object *)*out)->put<int32_t>(1, scale);
    return SUCCESS;
}
int cublasLtMatmulDescDestroy(void *object) { return destroy(object); }
int cublasLtMatmulDescSetAttribute(void *object, int attribute, const void *value, size_t size) {
    return ((Object *)object)->set({{3, 4}, {4, 4}, {7, 4}, {8, 8}}, attribute, value, size);
}
int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns, int64_t lead) {
    if (lead < (int64_t)rows) return INVALID_VALUE;
    make(out);
    ((Object *)*out)->put<int32_t>(0, type);
    ((Object *)*out)->put<uint64_t>(2, rows);
    ((Object *)*out)->put<uint64_t>(3, columns);
    ((Object *)*out)->put<int64_t>(4, lead);
    return SUCCESS;
}
int cublasLtMatrixLayoutDestroy(void *object) { return destroy(object); }
int cublasLtMatrixLayoutSetAttribute(void *object, int attribute, const void *value, size_t size) {
    return ((Object *)object)->set({{5, 4}, {6, 8}}, attribute, value, size);
}
int cublasLtMatmulPreferenceCreate(void **out) { return make(out); }
int cublasLtMatmulPreferenceDestroy(void *object) { return destroy(object); }
int cublasLtMatmulPreferenceSetAttribute(void *object, int attribute, const void *value, size_t size) {
    const std::map<int, size_t> sizes = {{1, 8}, {5, 4}, {6, 4}, {7, 4}, {8, 4}};
    return ((Object *)object)->set(sizes, attribute, value, size);
}
// The algorithm remembers what it is for: the alignment, and the type.
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *op, void *a, void *b, void *c, void *d,
                                   void *preference, int wanted, Result *results, int *count) {
    if (handle != (void *)0x1234 || wanted < 1) return INVALID_VALUE;
    if (is_set("FAKE_LT_HEURISTIC")) return atoi(getenv("FAKE_LT_HEURISTIC"));
    const Object &prefers = *(Object *)preference;
    const uint32_t alignment = prefers.get<uint32_t>(5, 256);
    *count = 0;
    if (is_set("FAKE_LT_ALIGNED") && alignment < 16) return SUCCESS;
    const bool wide = ((Object *)d)->get<int32_t>(0, 0) == 1;
    // As the real one: no epilogues for float64.
    if (wide && ((Object *)op)->get<uint32_t>(7, 1) != 1) return NOT_SUPPORTED;
    const int many = is_set("FAKE_LT_COUNT") ? atoi(getenv("FAKE_LT_COUNT")) : 1;
    for (*count = 0; *count < (many < wanted ? many : wanted); ++*count) {
        Result &result = results[*count] = Result();
        result.algorithm.data[0] = alignment;
        result.algorithm.data[1] = ((Object *)op)->get<int32_t>(0, 0);
        result.algorithm.data[2] = *count;
        // Each asks for another workspace, by which tests tell which one was chosen.
        result.workspace = prefers.get<uint64_t>(1, 0) < 4096 ? 0 : 4096 + *count;
    }
    return SUCCESS;
}
int cublasLtMatmul(void *handle, void *op, const void *alpha, const void *a, void *la, const void *b,
                   void *lb, const void *beta, const void *c, void *lc, void *d, void *ld,
                   const Algorithm *algorithm, void *workspace, size_t size, void *stream) {
    if (handle != (void *)0x1234 || stream != (void *)77) return INVALID_VALUE;
    const Object &operation = *(Object *)op;
    if (is_set("FAKE_LT_BROKEN") && (int)algorithm->data[2] == atoi(getenv("FAKE_LT_BROKEN")))
        return NOT_SUPPORTED;
    if ((int)algorithm->data[1] != operation.get<int32_t>(0, 0)) return INVALID_VALUE;
    for (const void *place : {a, b, c, (const void *)d})
        if ((uintptr_t)place % algorithm->data[0]) return INVALID_VALUE;
    memset(workspace, 0xA5, size);
    const Object &A = *(Object *)la, &B = *(Object *)lb, &C = *(Object *)lc, &D = *(Object *)ld;
    if (D.get<int32_t>(0, 0) == 0)
        multiply(operation, *(float *)alpha, (float *)a, A, (float *)b, B, *(float *)beta,
                 (float *)c, C, (float *)d, D);
    else
        multiply(operation, *(double *)alpha, (double *)a, A, (double *)b, B, *(double *)beta,
                 (double *)c, C, (double *)d, D);
    return SUCCESS;
}
}
