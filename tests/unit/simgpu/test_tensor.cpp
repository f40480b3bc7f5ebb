// Integer work on tensors.
#include <vector>

#include "api.h"
#include "catch.h"
#include "gate.h"
#include "simgpu/tensor/work.h"

using namespace simgpu;
using namespace simgpu::tensor;

extern "C" int simgpu_tensor_work(const Work* work, int device, Handle stream);
extern "C" int simgpu_stream_state(int device, Handle stream);

namespace {

template <class T>
Operand row(std::vector<T>& values, Type type) {
  Operand operand{};
  operand.data = reinterpret_cast<char*>(values.data());
  operand.strides[0] = 1;
  operand.type = type;
  return operand;
}

Operand number(int64_t value) {
  Operand operand{};
  operand.scalar = value;
  return operand;
}

Work work_on(Code code, int64_t elements, const Operand& out, const std::vector<Operand>& in) {
  Work work{};
  work.code = code;
  work.dims = 1;
  work.sizes[0] = elements;
  work.out = out;
  work.inputs = static_cast<int32_t>(in.size());
  for (size_t i = 0; i < in.size(); ++i) work.in[i] = in[i];
  return work;
}

std::vector<int32_t> result(Code code, std::vector<int32_t> a, int64_t b) {
  std::vector<int32_t> out(a.size());
  execute(work_on(code, static_cast<int64_t>(a.size()), row(out, kInt32), {row(a, kInt32), number(b)}));
  return out;
}

}  // namespace

TEST_CASE("division goes to the next lower integer, and none of it stops the process") {
  CHECK(result(kFloorDivide, {7, -7, 6, -6}, 3) == std::vector<int32_t>{2, -3, 2, -2});
  CHECK(result(kRemainder, {7, -7, 6, -6}, 3) == std::vector<int32_t>{1, 2, 0, 0});
  CHECK(result(kRemainder, {7, -7}, -3) == std::vector<int32_t>{-2, -1});
  CHECK(result(kFloorDivide, {INT32_MIN, 5}, -1) == std::vector<int32_t>{INT32_MIN, -5});
  result(kFloorDivide, {1}, 0);
  std::vector<int64_t> lowest{INT64_MIN};
  execute(work_on(kFloorDivide, 1, row(lowest, kInt64), {row(lowest, kInt64), number(-1)}));
  CHECK(lowest[0] == INT64_MIN);
}

TEST_CASE("narrow types wrap") {
  std::vector<uint8_t> bytes{250, 3};
  execute(work_on(kAdd, 2, row(bytes, kUint8), {row(bytes, kUint8), number(10)}));
  CHECK(bytes == std::vector<uint8_t>{4, 13});
}

TEST_CASE("the largest and smallest of every type are found") {
  std::vector<int8_t> negative{-100, -5, -128};
  std::vector<int8_t> found(1);
  Operand out = row(found, kInt8);
  out.strides[0] = 0;
  execute(work_on(kLargest, 3, out, {row(negative, kInt8)}));
  CHECK(found[0] == -5);
  execute(work_on(kSmallest, 3, out, {row(negative, kInt8)}));
  CHECK(found[0] == -128);
  std::vector<uint8_t> large{200, 255};
  std::vector<uint8_t> least(1);
  out = row(least, kUint8);
  out.strides[0] = 0;
  execute(work_on(kSmallest, 2, out, {row(large, kUint8)}));
  CHECK(least[0] == 200);
}

TEST_CASE("a sum along each row, and one that goes on") {
  std::vector<int64_t> values{1, 2, 3, 4, 5, 6};
  std::vector<int64_t> sums(2);
  Work work = work_on(kSum, 2, row(sums, kInt64), {row(values, kInt64)});
  work.dims = 2;
  work.sizes[1] = 3;
  work.in[0].strides[0] = 3;
  work.in[0].strides[1] = 1;
  execute(work);
  CHECK(sums == std::vector<int64_t>{6, 15});
  std::vector<int64_t> running(6);
  work.code = kCumulativeSum;
  work.out = row(running, kInt64);
  work.out.strides[0] = 3;
  work.out.strides[1] = 1;
  execute(work);
  CHECK(running == std::vector<int64_t>{1, 3, 6, 4, 9, 15});
}

TEST_CASE("what makes no sense is refused") {
  std::vector<int32_t> values{1};
  const Operand one = row(values, kInt32);
  CHECK(valid(work_on(kAdd, 1, one, {one, number(1)})));
  CHECK_FALSE(valid(work_on(kAdd, 1, one, {one})));
  CHECK_FALSE(valid(work_on(kNegate, 1, one, {one, one})));
  CHECK_FALSE(valid(work_on(kCodes, 1, one, {one})));
  CHECK_FALSE(valid(work_on(kCopy, 1, number(3), {one})));
  Operand real = one;
  real.type = kFloat32;
  CHECK(valid(work_on(kCopy, 1, real, {one})));
  CHECK_FALSE(valid(work_on(kCopy, 1, one, {real})));
  CHECK_FALSE(valid(work_on(kNegate, 1, real, {one})));
  CHECK(simgpu_tensor_work(nullptr, 0, nullptr) == kInvalidValue);
}

TEST_CASE("integer work waits for its turn, not the caller") {
  TestStream stream;
  Gate gate;
  std::vector<int32_t> values{1, 2};
  CHECK(simgpu_stream_state(0, stream) == 0);
  gate.close(stream);
  CHECK(simgpu_stream_state(0, stream) == 1);
  const Work twice = work_on(kMultiply, 2, row(values, kInt32), {row(values, kInt32), number(2)});
  CHECK(simgpu_tensor_work(&twice, 0, stream) == kSuccess);
  CHECK(values == std::vector<int32_t>{1, 2});
  gate.open();
  REQUIRE(cudaStreamSynchronize(stream) == kSuccess);
  CHECK(values == std::vector<int32_t>{2, 4});

  Handle graph = nullptr;
  Handle executable = nullptr;
  REQUIRE(cudaStreamBeginCapture(stream, kGlobalMode) == kSuccess);
  CHECK(simgpu_stream_state(0, stream) == 2);  // and the capture is still valid
  CHECK(simgpu_tensor_work(&twice, 0, stream) == kSuccess);
  REQUIRE(cudaStreamEndCapture(stream, &graph) == kSuccess);
  REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == kSuccess);
  CHECK(values == std::vector<int32_t>{2, 4});
  for (int i = 0; i < 2; ++i) REQUIRE(cudaGraphLaunch(executable, stream) == kSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == kSuccess);
  CHECK(values == std::vector<int32_t>{8, 16});
}
