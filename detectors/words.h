// Sentences that several detectors need.
#pragma once

#include <string>
#include <vector>

#include "detectors/registry.h"

namespace dshang::detect {

std::string call_text(const job::Side& side);  // "all_gather of 4000 f32"
std::string call_at(const Divergence& d);      // "call 118 of world"
// The sides that are told, the others are counted: all of a few; of many the suspects' and the largest.
struct ToldSides {
  std::vector<const job::Side*> told;
  std::string others;  // "9 other ways on ranks 3-11", "" where all are told
};
ToldSides told_sides(const Divergence& d);
std::string waiting_at(const Divergence& d);  // "all wait in call 118 of world", or only those that do
std::string modules_text(const JobView& view,
                         const job::Tokens& tokens);  // outermost names: "layers.3, layers.4"
std::string place_text(const JobView& view, const job::Token& token);  // "train.py:12 forward", "" unknown
std::string wait_text(const std::vector<Rank>& ranks);                 // "rank 2 waits", "ranks 0, 1 wait"
std::string step_text(const Divergence& d);                            // " in step 7", "" unknown
std::string bytes_text(std::uint64_t bytes);                           // "336 MiB"
std::string seconds_text(double seconds);                              // "0.3 s", "12 s", "10 min"
std::string threshold_text(const JobView& view);                       // which threshold a judgement rests on
std::string who(const Divergence& d);     // "rank 2", "ranks 0, 1"; for a tie "one side (rank 0)"
std::string others(const Divergence& d);  // members of the communicator that are no suspects

std::string told_text(const Divergence& d);    // those the story tells of: "rank 2"
std::string others_text(const Divergence& d);  // and those it compares them with: "ranks 0, 1, 3"
std::string times_text(std::size_t n);         // "1 time", "4 times"
std::string ordinal_text(std::size_t n);       // "1st", "22nd"

// "Rank 2 went on with layer3 (model.py:31 forward)." from the story; empty when nothing is known.
std::string went_on(const JobView& view, const Divergence& d);

// What every divergence says of itself: sides, positions, what was paired wrongly.
std::vector<std::string> evidence_of(const JobView& view, const Divergence& d);

Finding finding_of(const JobView& view, const Divergence& d, const char* type, Explanation explanation);

// Ranks in `ranks` that are alive.
std::vector<Rank> alive(const JobView& view, const std::vector<Rank>& ranks);

// Seconds from then until now, or until the rank's process ended.
double lasted(const JobView& view, const job::RankView& rank, std::uint64_t since_ns);

// When the rank last did something that was recorded (a call, a visit, a return from a call), 0 = never.
std::uint64_t last_activity(const JobView& view, const job::RankView& rank);
// The same for a rank without any outstanding call; 0 when one is outstanding, or a communicator is being
// created.
std::uint64_t idle_since(const JobView& view, const job::RankView& rank);

// The suspects' first call behind the parting was made outside every phase, after a step that they had
// finished, while the others had begun the next one.
bool between_steps(const Divergence& d);
// Calls (not visits) that were inserted from lines which the witness has never called from.
bool from_new_lines(const JobView& view, const Divergence& d);
// Functions of the user's or of a library on the way to these calls or visits, and the names of their phases.
std::vector<std::string> names_on_the_way(const JobView& view, const job::Tokens& tokens);
// Whether a function on the way to this call is named for saving, evaluating, logging or loading.
bool named_for_side(const JobView& view, const job::Token& token);

// Nobody is singled out, and it is not those that the story tells of but the others that went on to saving,
// evaluating, logging or loading.
bool others_save_or_evaluate(const JobView& view, const Divergence& d);

bool has_modules(const job::Tokens& tokens);
bool in_phase(const JobView& view, const job::Tokens& tokens, bool (*is_phase)(std::string_view));

}  // namespace dshang::detect
