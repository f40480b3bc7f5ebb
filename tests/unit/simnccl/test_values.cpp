// What collectives compute and move.
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "simgpu/nccl/floats.h"
#include "tests/unit/catch.h"
#include "tests/unit/simnccl/ranks.h"

using namespace simgpu::nccl;

namespace {

// Small whole numbers, which every type holds exactly.
std::vector<char> encode(const std::vector<int>& values, int type) {
  const size_t bytes = element_bytes(type);
  std::vector<char> out(values.size() * bytes);
  for (size_t i = 0; i < values.size(); ++i) {
    char* place = out.data() + i * bytes;
    const auto write = [&](auto value) { memcpy(place, &value, sizeof value); };
    switch (type) {
      case kInt8:
        write(static_cast<int8_t>(values[i]));
        break;
      case kUint8:
        write(static_cast<uint8_t>(values[i]));
        break;
      case kInt32:
        write(static_cast<int32_t>(values[i]));
        break;
      case kUint32:
        write(static_cast<uint32_t>(values[i]));
        break;
      case kInt64:
        write(static_cast<int64_t>(values[i]));
        break;
      case kUint64:
        write(static_cast<uint64_t>(values[i]));
        break;
      case kFloat16:
        write(static_cast<_Float16>(values[i]));
        break;
      case kFloat32:
        write(static_cast<float>(values[i]));
        break;
      case kFloat64:
        write(static_cast<double>(values[i]));
        break;
      case kBfloat16: {
        const float value = static_cast<float>(values[i]);
        uint32_t bits;
        memcpy(&bits, &value, 4);
        write(static_cast<uint16_t>(bits >> 16));
        break;
      }
      case kFloat8e4m3:
        write(std::map<int, uint8_t>{{0, 0},
                                     {1, 0x38},
                                     {2, 0x40},
                                     {3, 0x44},
                                     {4, 0x48},
                                     {5, 0x4a},
                                     {6, 0x4c},
                                     {8, 0x50},
                                     {10, 0x52},
                                     {12, 0x54}}
                  .at(values[i]));
        break;
      default:
        write(std::map<int, uint8_t>{{0, 0},
                                     {1, 0x3c},
                                     {2, 0x40},
                                     {3, 0x42},
                                     {4, 0x44},
                                     {5, 0x45},
                                     {6, 0x46},
                                     {8, 0x48},
                                     {10, 0x49},
                                     {12, 0x4a}}
                  .at(values[i]));
        break;
    }
  }
  return out;
}

std::vector<int> constant(int value, size_t count) { return std::vector<int>(count, value); }

struct Case {
  Rank& r;
  Comm comm;
  Stream stream;
  int type;

  Buffer filled(const std::vector<int>& values) const { return device_copy(encode(values, type)); }

  void holds(const Buffer& buffer, const std::vector<int>& values, const char* what) const {
    r.expect(Rank::done(stream), what);
    const std::vector<char> wanted = encode(values, type);
    r.expect(host_copy<char>(buffer, wanted.size()) == wanted, what);
  }
};

void check_reductions(const Case& c) {
  Rank& r = c.r;
  const int n = r.size;
  const int product = n == 3 ? 6 : n == 2 ? 2 : 1;
  const std::map<int, int> wanted = {{kSum, n * (n + 1) / 2}, {kProd, product}, {kMax, n}, {kMin, 1}};
  for (const auto& [op, value] : wanted) {
    const Buffer send = c.filled(constant(r.rank + 1, 5));
    const Buffer receive = c.filled(constant(0, 5));
    SUCCESS(ncclAllReduce(send, receive, 5, c.type, op, c.comm, c.stream));
    c.holds(receive, constant(value, 5), "all_reduce");

    SUCCESS(ncclAllReduce(send, send, 5, c.type, op, c.comm, c.stream));
    c.holds(send, constant(value, 5), "all_reduce in place");

    const Buffer blocks = c.filled(constant(r.rank + 1, 5 * n));
    const Buffer block = c.filled(constant(0, 5));
    SUCCESS(ncclReduceScatter(blocks, block, 5, c.type, op, c.comm, c.stream));
    c.holds(block, constant(value, 5), "reduce_scatter");

    for (int root = 0; root < n; ++root) {
      const Buffer give = c.filled(constant(r.rank + 1, 5));
      const Buffer take = c.filled(constant(0, 5));
      SUCCESS(ncclReduce(give, r.rank == root ? take.get() : nullptr, 5, c.type, op, root, c.comm, c.stream));
      c.holds(take, constant(r.rank == root ? value : 0, 5), "reduce");
    }
  }
  // The average of equal values is exact in every type.
  const Buffer same = c.filled(constant(2, 5));
  SUCCESS(ncclAllReduce(same, same, 5, c.type, kAvg, c.comm, c.stream));
  c.holds(same, constant(2, 5), "average");
}

std::vector<int> by_block(int blocks, int base = 0) {
  std::vector<int> values;
  for (int b = 0; b < blocks; ++b) values.insert(values.end(), 3, base + b + 1);
  return values;
}

void check_moves(const Case& c) {
  Rank& r = c.r;
  const int n = r.size;
  const Buffer mine = c.filled(constant(r.rank + 1, 3));
  const Buffer all = c.filled(constant(0, 3 * n));
  SUCCESS(ncclAllGather(mine, all, 3, c.type, c.comm, c.stream));
  c.holds(all, by_block(n), "all_gather");

  for (int root = 0; root < n; ++root) {
    const Buffer value = c.filled(constant(0, 3));
    SUCCESS(ncclBroadcast(r.rank == root ? mine.get() : nullptr, value, 3, c.type, root, c.comm, c.stream));
    c.holds(value, constant(root + 1, 3), "broadcast");

    const Buffer own = c.filled(constant(r.rank + 1, 3));
    SUCCESS(ncclBcast(own, 3, c.type, root, c.comm, c.stream));
    c.holds(own, constant(root + 1, 3), "bcast");

    const Buffer gathered = c.filled(constant(0, 3 * n));
    SUCCESS(ncclGather(mine, r.rank == root ? gathered.get() : nullptr, 3, c.type, root, c.comm, c.stream));
    c.holds(gathered, r.rank == root ? by_block(n) : constant(0, 3 * n), "gather");

    const Buffer parts = c.filled(by_block(n));
    const Buffer part = c.filled(constant(0, 3));
    SUCCESS(ncclScatter(r.rank == root ? parts.get() : nullptr, part, 3, c.type, root, c.comm, c.stream));
    c.holds(part, constant(r.rank + 1, 3), "scatter");
  }
  // Block q of rank p is p + q + 1, so rank p gets q + p + 1 from rank q: the same again.
  const Buffer outgoing = c.filled(by_block(n, r.rank));
  const Buffer incoming = c.filled(constant(0, 3 * n));
  SUCCESS(ncclAlltoAll(outgoing, incoming, 3, c.type, c.comm, c.stream));
  c.holds(incoming, by_block(n, r.rank), "all_to_all");
}

}  // namespace

TEST_CASE("every collective on every type", "[values]") {
  const int size = GENERATE(1, 2, 3);
  CHECK(all_well(run_ranks(size, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    for (int type = 0; type < kDataTypes; ++type) {
      const Case c{r, comm, stream, type};
      check_reductions(c);
      check_moves(c);
    }
    SUCCESS(ncclCommDestroy(comm));
  })));
}

TEST_CASE("what is larger than the rings, in and out of place", "[values]") {
  const int size = GENERATE(2, 4);
  CHECK(all_well(run_ranks(size, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const size_t count = 300001;
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 1000 + r.rank);
    const Buffer buffer = device_copy(values);
    SUCCESS(ncclAllReduce(buffer, buffer, count, kFloat32, kSum, comm, stream));
    EXPECT(Rank::done(stream));
    const std::vector<float> sum = host_copy<float>(buffer, count);
    for (size_t i = 0; i < count; ++i) {
      const float wanted = static_cast<float>(r.size * (i % 1000) + r.size * (r.size - 1) / 2);
      EXPECT(sum[i] == wanted);
    }

    std::vector<int64_t> blocks(count * r.size, -1);
    std::iota(blocks.begin() + r.rank * count, blocks.begin() + (r.rank + 1) * count, r.rank * 10000000);
    const Buffer all = device_copy(blocks);
    char* own = static_cast<char*>(all.get()) + r.rank * count * sizeof(int64_t);
    SUCCESS(ncclAllGather(own, all, count, kInt64, comm, stream));
    EXPECT(Rank::done(stream));
    const std::vector<int64_t> gathered = host_copy<int64_t>(all, count * r.size);
    for (int q = 0; q < r.size; ++q) {
      EXPECT(gathered[q * count] == q * 10000000);
      EXPECT(gathered[(q + 1) * count - 1] == q * 10000000 + static_cast<int64_t>(count) - 1);
    }

    SUCCESS(ncclReduceScatter(all, own, count, kInt64, kMax, comm, stream));
    EXPECT(Rank::done(stream));
    const std::vector<int64_t> scattered = host_copy<int64_t>(all, count * r.size);
    EXPECT(scattered[r.rank * count + count - 1] == r.rank * 10000000 + static_cast<int64_t>(count) - 1);
    SUCCESS(ncclCommDestroy(comm));
  })));
}

TEST_CASE("memory that was never written counts as zeros, and overwrites", "[values]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const size_t count = 1 << 20;
    const Buffer untouched(count * sizeof(float));
    const Buffer ones = device_copy(std::vector<float>(count, 1));
    SUCCESS(ncclAllReduce(r.rank == 0 ? ones : untouched, ones, count, kFloat32, kSum, comm, stream));
    EXPECT(Rank::done(stream));
    EXPECT(host_copy<float>(ones, count) == std::vector<float>(count, 1));
    SUCCESS(ncclBroadcast(r.rank == 0 ? untouched.get() : nullptr, ones, count, kFloat32, 0, comm, stream));
    EXPECT(Rank::done(stream));
    EXPECT(host_copy<float>(ones, count) == std::vector<float>(count, 0));
  })));
}

TEST_CASE("integers are added as integers and wrap", "[values]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer large = device_copy(std::vector<int64_t>{(int64_t{1} << 53) + 1 + r.rank, INT64_MAX});
    SUCCESS(ncclAllReduce(large, large, 2, kInt64, kSum, comm, stream));
    const Buffer small = device_copy(std::vector<int8_t>{100, -7});
    SUCCESS(ncclAllReduce(small, small, 2, kInt8, kSum, comm, stream));
    const Buffer unsigned_max = device_copy(std::vector<uint64_t>{r.rank == 0 ? UINT64_MAX : 1});
    SUCCESS(ncclAllReduce(unsigned_max, unsigned_max, 1, kUint64, kMax, comm, stream));
    const Buffer average = device_copy(std::vector<int32_t>{r.rank == 0 ? -3 : -4});
    SUCCESS(ncclAllReduce(average, average, 1, kInt32, kAvg, comm, stream));
    EXPECT(Rank::done(stream));
    EXPECT((host_copy<int64_t>(large, 2) == std::vector<int64_t>{(int64_t{1} << 54) + 3, -2}));
    EXPECT((host_copy<int8_t>(small, 2) == std::vector<int8_t>{-56, -14}));
    EXPECT(host_copy<uint64_t>(unsigned_max, 1)[0] == UINT64_MAX);
    EXPECT(host_copy<int32_t>(average, 1)[0] == -3);
  })));
}

TEST_CASE("8-bit floats", "[values]") {
  CHECK(from_float8e4m3(0x7e) == 448.0f);
  CHECK(from_float8e4m3(0x01) == std::ldexp(1.0f, -9));
  CHECK(std::isnan(from_float8e4m3(0xff)));
  CHECK(from_float8e5m2(0x7b) == 57344.0f);
  CHECK(std::isinf(from_float8e5m2(0xfc)));
  CHECK(to_float8e4m3(1000.0f) == 0x7e);
  CHECK(to_float8e4m3(-0.0f) == 0x80);
  CHECK(to_float8e4m3(17.0f) == to_float8e4m3(16.0f));  // a tie goes to the even one
  CHECK(to_float8e4m3(19.0f) == to_float8e4m3(20.0f));
  for (int bits = 0; bits < 256; ++bits) {
    const auto value = static_cast<uint8_t>(bits);
    if ((bits & 0x7f) != 0x7f) CHECK(to_float8e4m3(from_float8e4m3(value)) == value);
    if ((bits & 0x7f) < 0x7c) CHECK(to_float8e5m2(from_float8e5m2(value)) == value);
  }
}

TEST_CASE("bfloat16 is rounded to nearest even, once", "[values]") {
  CHECK(to_bfloat16(1.00390625f) == 0x3f80);  // 1 + 2^-8: halfway, to even
  CHECK(to_bfloat16(1.01171875f) == 0x3f82);  // 1 + 3 * 2^-8
  CHECK(std::isnan(from_bfloat16(to_bfloat16(std::nanf("")))));
}

TEST_CASE("every rank multiplies by its own scalar before the sum", "[values]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer values = device_copy(std::vector<float>{1, 2, 3});
    float scalar = r.rank == 0 ? 0.5f : 2.0f;
    int op = 0;
    SUCCESS(ncclRedOpCreatePreMulSum(&op, &scalar, kFloat32, kScalarHostImmediate, comm));
    EXPECT(op >= kFirstUserOp);
    SUCCESS(ncclAllReduce(values, values, 3, kFloat32, op, comm, stream));
    SUCCESS(ncclRedOpDestroy(op, comm));
    EXPECT(Rank::done(stream));
    EXPECT((host_copy<float>(values, 3) == std::vector<float>{2.5f, 5, 7.5f}));
    EXPECT(ncclAllReduce(values, values, 3, kFloat32, op, comm, stream) == kInvalidArgument);
    EXPECT(ncclRedOpDestroy(op, comm) == kInvalidArgument);

    Buffer on_device = device_copy(std::vector<int64_t>{r.rank + 2});
    const Buffer integers = device_copy(std::vector<int64_t>{10});
    SUCCESS(ncclRedOpCreatePreMulSum(&op, on_device, kInt64, kScalarDevice, comm));
    SUCCESS(
        ncclReduceScatter(device_copy(std::vector<int64_t>{10, 20}), integers, 1, kInt64, op, comm, stream));
    EXPECT(Rank::done(stream));
    EXPECT(host_copy<int64_t>(integers, 1)[0] == (r.rank + 1) * 10 * 5);
  })));
}

TEST_CASE("only the beginning of large float collectives is moved if so asked, integers always", "[values]") {
  CHECK(all_well(run_ranks(2,
                           [](Rank& r) {
                             const Comm comm = r.comm();
                             const Stream stream = Rank::stream();
                             const Buffer floats = device_copy(std::vector<float>(4096, 1));
                             const Buffer integers = device_copy(std::vector<int32_t>(4096, 1));
                             SUCCESS(ncclAllReduce(floats, floats, 4096, kFloat32, kSum, comm, stream));
                             SUCCESS(ncclAllReduce(integers, integers, 4096, kInt32, kSum, comm, stream));
                             EXPECT(Rank::done(stream));
                             const std::vector<float> sum = host_copy<float>(floats, 4096);
                             EXPECT(sum[1023] == 2 && sum[1024] == 1);
                             EXPECT(host_copy<int32_t>(integers, 4096) == std::vector<int32_t>(4096, 2));
                           },
                           {"SIMNCCL_DATA_CAP=4096"})));
}
