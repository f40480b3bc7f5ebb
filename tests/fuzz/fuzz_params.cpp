// Any text taken for the value of a parameter of each type: it is accepted and lies in the range, or is refused with one
// line.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/rank/param.h"
#include "tests/fuzz/seeds.h"

using namespace dshang::rank;

namespace {

DSHANG_PARAM(bool, FUZZ_FLAG, "1", "0|1", "a flag");
DSHANG_PARAM(integer, FUZZ_WHOLE, "8", "-3..4096", "a whole number");
DSHANG_PARAM(seconds, FUZZ_TIME, "30", "0.1..86400", "a time");
DSHANG_PARAM(percent_or_bytes, FUZZ_AMOUNT, "5%", "0.5%..50%", "an amount");
DSHANG_PARAM(choice, FUZZ_CHOICE, "report", "report|fail|exec:*", "a choice");
DSHANG_PARAM(string, FUZZ_TEXT, "", "a path", "a text");

[[noreturn]] void fail(const ParamDescriptor& param, const char* what, const std::string& text) {
  std::fprintf(stderr, "fuzz_params: %s of DSHANG_%s: %s\n", what, param.name, text.c_str());
  std::abort();
}

template <typename Value>
Value parsed(const ParamDescriptor& param, const char* text) {
  Value value{};
  detail::parse(param, text, &value);
  return value;
}

bool in_range(const ParamDescriptor& param, const char* text) {
  if (&param == &param_descriptor_FUZZ_WHOLE) {
    auto whole = parsed<std::int64_t>(param, text);
    return whole >= -3 && whole <= 4096;
  }
  if (&param == &param_descriptor_FUZZ_TIME) {
    auto time = parsed<double>(param, text);
    return time >= 0.1 && time <= 86400;
  }
  if (&param == &param_descriptor_FUZZ_AMOUNT) {
    auto amount = parsed<PercentOrBytes>(param, text);
    return !amount.is_percent || (amount.percent >= 0.5 && amount.percent <= 50);
  }
  return true;
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {"1",  "off", "-3",   "4096", "0.1",       "86400", "5%",  "1.5 GiB",
          "2k", "7MB", "fail", "exec", "exec:./a b", "REPORT", "12s", "/tmp/a"};
}

std::vector<std::string> fuzz_words() { return {"%", ".", "..", "-", "e9", "inf", "nan", "0x", "|", ":", "iB", "\n", "99999999999999999999", "\xff"}; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  text = text.c_str();  // an environment holds no zero bytes
  for (const ParamDescriptor* param :
       {&param_descriptor_FUZZ_FLAG, &param_descriptor_FUZZ_WHOLE, &param_descriptor_FUZZ_TIME, &param_descriptor_FUZZ_AMOUNT,
        &param_descriptor_FUZZ_CHOICE, &param_descriptor_FUZZ_TEXT}) {
    char line[1024] = "";
    bool complains = complain_about(*param, text.c_str(), line, sizeof line);
    if (complains == param_accepts(*param, text.c_str())) fail(*param, "accepted and refused", text);
    if (complains && (std::strchr(line, '\n') || !std::strstr(line, param->name))) fail(*param, "not one line", line);
    if (!complains && !text.empty() && !in_range(*param, text.c_str())) fail(*param, "out of range", text);
  }
  return 0;
}
