// All entries, ready to be sought.  Made once for the process; safe to use from several threads.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "explain/entry.h"
#include "explain/literals.h"

namespace re2 {
class RE2;
}

namespace dshang::explain {

// What a word found in a line is looked at for.
enum class Sense {
  kEntry,
  kTraceback,
  kLoss,
  kGradNorm,
  kOverflow,
  kStep,
  kBar,
  kNccl,
  kTimeout,
  kTimeoutGroup,
  kOutOfMemory,
  kWorldSize,
  kFailedRank,
  kRankFailed,
  kOthersEnded,
  kConfig,
  kConfigNvme,
  kMuon,
  kSpeaker,
};

class Catalogue {
 public:
  static const Catalogue& shared();

  struct Use {
    Sense sense = Sense::kEntry;
    const Entry* entry = nullptr;
    const re2::RE2* regex = nullptr;  // nullptr: the word is all there is to match
    const re2::RE2* frame = nullptr;  // nullptr: any
    int pattern = 0;                  // its place in the entry's list
  };
  const Literals& literals() const { return *literals_; }
  const std::vector<Use>& uses(std::size_t word) const { return uses_[word]; }

  const std::vector<const Entry*>& entries() const { return entries_; }
  // nullptr where there is none of that name.
  const Entry* find(std::string_view id) const;

  ~Catalogue();

 private:
  Catalogue();
  void use(const std::string& word, Use use);
  const re2::RE2* compiled(const char* regex);

  std::vector<const Entry*> entries_;
  std::vector<std::unique_ptr<re2::RE2>> regexes_;
  std::vector<std::string> words_;
  std::vector<std::vector<Use>> uses_;
  std::unique_ptr<Literals> literals_;
};

// Whether `text` has a match of the expression somewhere; invalid UTF-8 is no obstacle.
bool matches(const re2::RE2& regex, std::string_view text);

}  // namespace dshang::explain
