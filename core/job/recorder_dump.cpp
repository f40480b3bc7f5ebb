#include "core/job/recorder_dump.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "core/job/printable.h"
#include "core/job/recorder_json.h"
#include "core/job/recorder_pickle.h"
#include "core/job/recorder_words.h"

namespace dshang::job {
namespace {

using Kind = RecorderValue::Kind;

constexpr std::size_t kMostFields = 64;  // of an entry
constexpr std::size_t kTypesCompared = 64;
constexpr std::size_t kMostRanks = 1 << 20;  // of a group

enum class Field : std::uint8_t {
  kUnknown,
  kOther,
  kRecordId,
  kPgId,
  kGroup,
  kCollectiveSeq,
  kP2pSeq,
  kName,
  kInputSizes,
  kOutputSizes,
  kInputTypes,
  kOutputTypes,
  kCreated,
  kStarted,
  kCompleted,
  kState,
  kRetired,
  kTimeout,
  kIsP2p,
  kThread,
  kThreadName,
  kFrames,
};

struct FieldName {
  std::string_view name;
  Field field;
};

constexpr FieldName kFields[] = {
    {"record_id", Field::kRecordId},
    {"pg_id", Field::kPgId},
    {"process_group", Field::kGroup},
    {"collective_seq_id", Field::kCollectiveSeq},
    {"p2p_seq_id", Field::kP2pSeq},
    {"profiling_name", Field::kName},
    {"input_sizes", Field::kInputSizes},
    {"output_sizes", Field::kOutputSizes},
    {"input_dtypes", Field::kInputTypes},
    {"output_dtypes", Field::kOutputTypes},
    {"time_created_ns", Field::kCreated},
    {"time_discovered_started_ns", Field::kStarted},
    {"time_discovered_completed_ns", Field::kCompleted},
    {"state", Field::kState},
    {"retired", Field::kRetired},
    {"timeout_ms", Field::kTimeout},
    {"is_p2p", Field::kIsP2p},
    {"thread_id", Field::kThread},
    {"thread_name", Field::kThreadName},
    {"frames", Field::kFrames},
};

// Also of a text: the JSON form has some numbers so.
std::int64_t integer_of(const RecorderTree& tree, const RecorderValue& value, std::int64_t otherwise) {
  if (value.kind == Kind::kInteger) return value.integer;
  std::string_view text = tree.text_of(value);
  std::int64_t number = otherwise;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? number : otherwise;
}

std::uint64_t time_of(const RecorderTree& tree, const RecorderValue& value) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, integer_of(tree, value, 0)));
}

class Decoder {
 public:
  explicit Decoder(RecorderDump& dump) : dump_(dump), tree_(dump.tree) {}
  void run();

 private:
  void groups(const RecorderValue& config);
  void status(const RecorderValue& all);
  void entry(const RecorderValue& value);
  void field(Field field, const RecorderValue& value, RecorderEntry& entry);
  Field field_of(const RecorderValue& key);
  std::vector<std::int32_t> ranks_of(const RecorderValue& value) const;
  std::uint64_t product(const RecorderValue& dimensions);
  std::uint64_t elements(const RecorderValue& sizes);
  flight::DType type_of(const RecorderValue& types) const;
  std::uint32_t text_index(const RecorderValue& value) const {
    return value.kind == Kind::kText ? value.index : kNoText;
  }

  RecorderDump& dump_;
  const RecorderTree& tree_;
  std::vector<Field> fields_;                   // by text
  std::vector<std::uint64_t> products_, sums_;  // by container, + 1; what entries share is counted once
};

Field Decoder::field_of(const RecorderValue& key) {
  if (key.kind != Kind::kText) return Field::kOther;
  Field& known = fields_[key.index];
  if (known != Field::kUnknown) return known;
  known = Field::kOther;
  for (const FieldName& one : kFields) {
    if (one.name == tree_.text_of(key)) known = one.field;
  }
  return known;
}

// "[0, 1, 2]", as torch writes it, or a list.
std::vector<std::int32_t> Decoder::ranks_of(const RecorderValue& value) const {
  std::vector<std::int32_t> ranks;
  auto add = [&](std::int64_t rank) {
    if (rank < 0 || rank > INT32_MAX || ranks.size() >= kMostRanks) {
      throw std::runtime_error("pg_config: " + std::to_string(rank) + " is no rank");
    }
    ranks.push_back(static_cast<std::int32_t>(rank));
  };
  for (const RecorderValue& one : tree_.items(value)) add(integer_of(tree_, one, -1));
  std::string_view text = tree_.text_of(value);
  for (const char *at = text.data(), *end = at + text.size(); at != end;) {
    std::int64_t number = 0;
    auto [next, error] = std::from_chars(at, end, number);
    if (error == std::errc()) add(number);
    at = error == std::errc() ? next : at + 1;
  }
  return ranks;
}

void Decoder::groups(const RecorderValue& config) {
  std::span<const RecorderValue> all = tree_.items(config);
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    RecorderGroup group;
    group.name = tree_.text_of(all[i]);
    if (const RecorderValue* text = tree_.find(all[i + 1], "desc")) group.description = tree_.text_of(*text);
    if (const RecorderValue* ranks = tree_.find(all[i + 1], "ranks")) group.ranks = ranks_of(*ranks);
    dump_.groups.push_back(std::move(group));
  }
  // Names are counted up as the groups are made; others are in no order.
  std::stable_sort(dump_.groups.begin(), dump_.groups.end(), [](const auto& a, const auto& b) {
    return a.name.size() != b.name.size() ? a.name.size() < b.name.size() : a.name < b.name;
  });
}

void Decoder::status(const RecorderValue& value) {
  dump_.status.emplace();
  std::span<const RecorderValue> all = tree_.items(value);
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    std::int64_t id = integer_of(tree_, all[i], -1);
    RecorderStatus status;
    if (const auto* number = tree_.find(all[i + 1], "last_enqueued_collective"))
      status.enqueued = integer_of(tree_, *number, -1);
    if (const auto* number = tree_.find(all[i + 1], "last_completed_collective"))
      status.completed = integer_of(tree_, *number, -1);
    if (id >= 0) dump_.status->emplace(id, status);
  }
}

// Saturates: no tensor is that large.
std::uint64_t Decoder::product(const RecorderValue& dimensions) {
  if (dimensions.kind != Kind::kList) return 0;
  std::uint64_t& known = products_[dimensions.index];
  if (known) return known - 1;
  std::uint64_t count = 1;
  for (const RecorderValue& one : tree_.items(dimensions)) {
    std::uint64_t size =
        one.kind == Kind::kInteger && one.integer > 0 ? static_cast<std::uint64_t>(one.integer) : 0;
    if (__builtin_mul_overflow(count, size, &count)) count = UINT64_MAX - 1;
  }
  count = std::min(count, UINT64_MAX - 1);
  known = count + 1;
  return count;
}

std::uint64_t Decoder::elements(const RecorderValue& sizes) {
  if (sizes.kind != Kind::kList) return 0;
  std::span<const RecorderValue> tensors = tree_.items(sizes);
  if (tensors.size() == 1) return product(tensors[0]);
  std::uint64_t& known = sums_[sizes.index];
  if (known) return known - 1;
  std::uint64_t count = 0;
  for (const RecorderValue& one : tensors) {
    if (__builtin_add_overflow(count, product(one), &count)) count = UINT64_MAX - 1;
  }
  count = std::min(count, UINT64_MAX - 1);
  known = count + 1;
  return count;
}

flight::DType Decoder::type_of(const RecorderValue& types) const {
  std::span<const RecorderValue> all = tree_.items(types);
  if (all.empty()) return flight::DType::kNone;
  flight::DType first = dtype_of_recorder(tree_.text_of(all[0]));
  for (std::size_t i = 1; i < std::min(all.size(), kTypesCompared); ++i) {
    bool same = all[i].index == all[0].index || tree_.text_of(all[i]) == tree_.text_of(all[0]);
    if (!same) return flight::DType::kUnknown;
  }
  return first;
}

void Decoder::field(Field field, const RecorderValue& value, RecorderEntry& entry) {
  switch (field) {
    case Field::kRecordId:
      entry.record_id = integer_of(tree_, value, -1);
      return;
    case Field::kPgId:
      entry.pg_id = integer_of(tree_, value, -1);
      return;
    case Field::kGroup: {
      std::span<const RecorderValue> pair = tree_.items(value);  // name and description; once the name alone
      entry.group = text_index(pair.empty() ? value : pair[0]);
      return;
    }
    case Field::kCollectiveSeq:
      entry.collective_seq = integer_of(tree_, value, 0);
      return;
    case Field::kP2pSeq:
      entry.p2p_seq = integer_of(tree_, value, 0);
      return;
    case Field::kName:
      entry.name = text_index(value);
      return;
    case Field::kInputSizes:
      entry.input_count = elements(value);
      return;
    case Field::kOutputSizes:
      entry.output_count = elements(value);
      return;
    case Field::kInputTypes:
      entry.input = type_of(value);
      return;
    case Field::kOutputTypes:
      entry.output = type_of(value);
      return;
    case Field::kCreated:
      entry.created_ns = time_of(tree_, value);
      return;
    case Field::kStarted:
      entry.started_ns = time_of(tree_, value);
      return;
    case Field::kCompleted:
      entry.completed_ns = time_of(tree_, value);
      return;
    case Field::kState:
      entry.completed = tree_.text_of(value) == "completed";
      return;
    case Field::kRetired:
      entry.retired = value.kind == Kind::kTrue;
      return;
    case Field::kTimeout:
      entry.timeout_ms = integer_of(tree_, value, 0);
      return;
    case Field::kIsP2p:
      entry.is_p2p = value.kind == Kind::kTrue;
      return;
    case Field::kThread:
      entry.thread = text_index(value);
      return;
    case Field::kThreadName:
      entry.thread_name = text_index(value);
      return;
    case Field::kFrames:
      entry.frames = value;
      return;
    case Field::kUnknown:
    case Field::kOther:
      return;
  }
}

void Decoder::entry(const RecorderValue& value) {
  std::span<const RecorderValue> all = tree_.items(value);
  if (value.kind != Kind::kDictionary || all.size() > 2 * kMostFields) {
    throw std::runtime_error("entry " + std::to_string(dump_.entries.size()) + " is none");
  }
  RecorderEntry entry;
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) field(field_of(all[i]), all[i + 1], entry);
  dump_.entries.push_back(entry);
}

void Decoder::run() {
  const RecorderValue& root = tree_.root;
  const RecorderValue* version = tree_.find(root, "version");
  const RecorderValue* config = tree_.find(root, "pg_config");
  if (!version || !config)
    throw std::runtime_error("it is no Flight Recorder dump: version or pg_config is missing");
  dump_.version = printable(tree_.text_of(*version));
  if (!dump_.version.starts_with("2.")) {
    throw std::runtime_error("a Flight Recorder dump of version \"" + dump_.version.substr(0, 20) +
                             "\"; versions 2.x are read");
  }
  fields_.resize(tree_.text_count(), Field::kUnknown);
  products_.resize(tree_.container_count());
  sums_.resize(tree_.container_count());
  groups(*config);
  if (const RecorderValue* all = tree_.find(root, "pg_status")) status(*all);
  const RecorderValue* entries = tree_.find(root, "entries");  // JSON has none where there are none
  if (!entries) return;
  dump_.entries.reserve(tree_.items(*entries).size());
  for (const RecorderValue& one : tree_.items(*entries)) entry(one);
}

std::string_view without_space(std::string_view text) {
  std::size_t at = text.find_first_not_of(" \t\r\n");
  return at == text.npos ? std::string_view() : text.substr(at);
}

}  // namespace

bool looks_like_recorder_dump(std::string_view bytes) {
  return looks_like_pickle(bytes) || without_space(bytes).starts_with('{');
}

RecorderDump read_recorder_dump(std::string_view bytes) {
  RecorderDump dump;
  dump.tree = looks_like_pickle(bytes) ? read_pickle(bytes) : read_recorder_json(bytes);
  Decoder(dump).run();
  return dump;
}

}  // namespace dshang::job
