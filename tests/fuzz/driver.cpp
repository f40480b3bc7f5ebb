// Tries mutations of the seeds, the same ones every time: kRounds of them, or as many as fit in FUZZ_SECONDS.
// With a folder as argument, and the path of a file: writes the seeds into the one and the words as
// libFuzzer's dictionary into the other, and does nothing else.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>

#include "tests/fuzz/seeds.h"

namespace {

constexpr int kRounds = 4000;

class Mutator {
 public:
  std::string mutate(std::string input) {
    for (std::uint64_t edits = 1 + below(below(8) ? 4 : 60); edits > 0; --edits) edit(input);
    return input;
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return limit ? random_() % limit : 0; }

  void edit(std::string& input) {
    std::size_t at = below(input.size() + 1);
    switch (below(8)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < input.size()) input[at] = static_cast<char>(random_());
        break;
      case 2:
        put_number(input, at & ~std::size_t{7}, 8);
        break;
      case 3:
        put_number(input, at & ~std::size_t{3}, 4);
        break;
      case 4:
        input.insert(at, words_.empty() ? std::string(1, 'x') : words_[below(words_.size())]);
        break;
      case 5:
        input.erase(at, 1 + below(below(4) ? 8 : input.size()));
        break;
      case 6: {  // a piece from elsewhere, in place
        std::size_t from = below(input.size()),
                    length = std::min(below(256), input.size() - std::max(from, at));
        std::memmove(input.data() + at, std::string(input, from, length).data(), length);
        break;
      }
      default:  // a byte, a half of the header more often
        at = below(std::min<std::size_t>(input.size(), 768));
        put_number(input, at & ~std::size_t{3}, 4);
    }
  }

  void put_number(std::string& input, std::size_t at, std::size_t bytes) {
    static constexpr std::uint64_t kTelling[] = {0,
                                                 1,
                                                 2,
                                                 7,
                                                 8,
                                                 63,
                                                 64,
                                                 255,
                                                 4096,
                                                 65535,
                                                 1u << 31,
                                                 UINT32_MAX,
                                                 std::uint64_t{1} << 62,
                                                 INT64_MAX,
                                                 UINT64_MAX - 63,
                                                 UINT64_MAX};
    if (at + bytes > input.size()) return;
    std::uint64_t number = 0;
    std::memcpy(&number, input.data() + at, bytes);
    number = below(2) ? kTelling[below(std::size(kTelling))] : number + below(9) - 4;
    std::memcpy(input.data() + at, &number, bytes);
  }

  std::mt19937_64 random_{20240229};
  std::vector<std::string> words_ = fuzz_words();
};

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

int write_to(const std::string& folder, const std::vector<std::string>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::ofstream file(folder + "/seed" + std::to_string(i), std::ios::binary);
    if (!file.write(inputs[i].data(), static_cast<std::streamsize>(inputs[i].size()))) {
      std::fprintf(stderr, "cannot write to %s\n", folder.c_str());
      return 1;
    }
  }
  return 0;
}

int write_words(const char* path, const std::vector<std::string>& words) {
  std::ofstream file(path);
  for (const std::string& word : words) {
    file << '"';
    for (unsigned char byte : word) {
      char text[5];
      std::snprintf(text, sizeof text, "\\x%02x", byte);
      file << text;
    }
    file << "\"\n";
  }
  return file.flush() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> inputs = fuzz_seeds();
  if (argc > 1) return write_to(argv[1], inputs) || (argc > 2 && write_words(argv[2], fuzz_words()));
  for (const std::string& seed : inputs) {
    run(seed);
    for (std::size_t cut = 0; cut < seed.size(); cut += 1 + seed.size() / 50) run(seed.substr(0, cut));
  }
  const char* text = std::getenv("FUZZ_SECONDS");
  double seconds = text ? std::atof(text) : 0;
  auto begin = std::chrono::steady_clock::now();
  auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  Mutator mutator;
  long rounds = 0;
  for (; rounds < kRounds || (seconds > 0 && passed() < seconds); ++rounds) {
    run(mutator.mutate(inputs[static_cast<std::size_t>(rounds) % inputs.size()]));
  }
  std::printf("%ld mutations in %.1f s\n", rounds, passed());
}
