// nan: a loss, a gradient norm, a batch or an evaluation that is not finite.
//
// The probe notes the first of each on each rank, what the model computed in, and, of the first training
// forward and of one behind a loss that was not finite, the innermost module whose output was not finite.
// What is not finite is proven; why is proven only where a batch shows it.  It cannot tell: the module of a
// single bad forward in the middle of a healthy run (every module is looked at only in the forward behind
// it), and a bad field of a batch that never was on the CPU, or of one that was left out to keep the cost
// down.
#include <algorithm>

#include "detectors/number_facts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

constexpr std::int64_t kPrefetched =
    3;  // steps between a batch that leaves its loader and the step that uses it
constexpr std::int64_t kFirstSteps = 10;  // in which a wrong optimizer shows

struct Seen {
  const job::RankView* rank = nullptr;
  NumberFact loss, norm, losses, batch, ids, module, parameters;
  std::int64_t step = 0;  // first step of which something was not finite
  bool by_norm = false;   // it was the norm of its gradients, which all ranks share, and not its own loss
  const NumberFact& first() const { return by_norm ? norm : loss; }
};

// Ranks whose training met something that is not finite, the first ones first.
std::vector<Seen> seen_in_training(const JobView& view) {
  std::vector<Seen> all;
  for (const job::RankView* rank : real_ranks(view)) {
    Seen seen;
    seen.rank = rank;
    seen.loss = {view, *rank, "nan.loss"};
    seen.norm = {view, *rank, "nan.norm"};
    if (!seen.loss && !seen.norm) continue;
    seen.losses = {view, *rank, "nan.losses"};
    seen.batch = {view, *rank, "nan.batch"};
    seen.ids = {view, *rank, "ids.range"};
    seen.module = {view, *rank, "nan.module"};
    seen.parameters = {view, *rank, "nan.parameters"};
    std::int64_t of_loss = seen.loss.whole("step").value_or(0), of_norm = seen.norm.whole("step").value_or(0);
    seen.by_norm = !seen.loss || (seen.norm && of_norm < of_loss);
    seen.step = seen.by_norm ? of_norm : of_loss;
    all.push_back(std::move(seen));
  }
  std::stable_sort(all.begin(), all.end(), [](const Seen& a, const Seen& b) {
    return a.step != b.step ? a.step < b.step : a.by_norm < b.by_norm;
  });
  return all;
}

std::string value_of(const NumberFact& fact) {
  return fact.text("value") == "inf" ? "infinite" : fact.text("value");
}

// Taken from its loader shortly before the step: the one that the step used, or could have.
bool belongs_to(const NumberFact& batch, std::int64_t step) {
  if (!batch) return false;
  std::optional<std::int64_t> taken = batch.whole("step");  // the step before; none before the first one
  return taken ? *taken <= step && *taken + kPrefetched >= step : step <= kPrefetched;
}

std::string field_text(const NumberFact& batch) {
  std::string field = batch.text("field").empty() ? "the tensor" : "field " + batch.text("field");
  std::string samples = batch.text("samples");
  return field + " (" + batch.text("kind") + ")" + (samples.empty() ? "" : ", sample " + samples);
}

std::string module_text(const NumberFact& module) {
  std::string text = "in the forward of step " + module.text("step") + " the output of " +
                     module.text("module") + " (" + module.text("output") +
                     ") was the first that was not finite";
  if (module.text("input") == "finite") return text + "; what it was given was finite";
  if (module.text("input") == "not") return text + "; what it was given was not finite either";
  return text;
}

struct Cause {
  std::string text;  // goes on behind the headline
  bool proven = false;
  std::vector<Rank> suspects;
  std::vector<std::string> evidence, fix;
};

void add_learning_remedies(Cause& cause) {
  cause.fix.push_back(
      "\"gradient_clipping\": 1.0 in ds_config (max_grad_norm=1.0 in TrainingArguments, clip_grad_norm_ in a "
      "loop of your "
      "own), a lower learning rate, a longer warm-up.");
}

std::optional<Cause> of_batch(const std::vector<Seen>& first) {
  Cause cause;
  const Seen* one = nullptr;
  for (const Seen& seen : first) {
    if (!belongs_to(seen.batch, seen.step)) continue;
    if (!one) one = &seen;
    cause.suspects.push_back(seen.rank->rank);
  }
  if (!one) return std::nullopt;
  const NumberFact& batch = one->batch;
  cause.proven = true;
  cause.text = ": batch " + batch.text("batch") + " of " + job::ranks_text({one->rank->rank}) +
               "'s loader holds " + batch.text("bad") + " of " + batch.text("of") +
               " values that are not finite in " + field_text(batch);
  cause.evidence.push_back(
      "batches are counted from 0 in each loop over the loader, samples from 0 in the batch");
  cause.fix.push_back(
      "Look at these samples: a division by a standard deviation or a count of 0, a logarithm of 0, a "
      "missing value that "
      "was read as nan, a number too large for its type.");
  cause.fix.push_back(
      "Check every field once, in the data set or in collate_fn: assert torch.isfinite(x).all(). Leave a bad "
      "sample out "
      "there, not by skipping the step on one rank: the others would wait for it.");
  return cause;
}

Cause cause_in_ids(const job::RankView& rank, const NumberFact& ids) {
  Cause cause;
  cause.suspects = {rank.rank};
  cause.text = ": batch " + ids.text("batch") + " of " + job::ranks_text(cause.suspects) +
               "'s loader holds ids from " + ids.text("smallest") + " to " + ids.text("largest") + " in " +
               field_text(ids) + ", and the model's largest embedding has " + ids.text("rows") + " rows";
  cause.fix.push_back(
      "Use the tokenizer that belongs to the model; after tokens were added: "
      "model.resize_token_embeddings(len(tokenizer)), on every rank and before deepspeed.initialize.");
  cause.fix.push_back("Pad with tokenizer.pad_token_id; -100 is for labels only.");
  return cause;
}

std::optional<Cause> of_ids(const std::vector<Seen>& first) {
  for (const Seen& seen : first) {
    if (belongs_to(seen.ids, seen.step)) return cause_in_ids(*seen.rank, seen.ids);
  }
  return std::nullopt;
}

std::optional<Cause> of_muon(const JobView& view, const std::vector<Seen>& first) {
  const std::string& outer = fact_of(view, *first[0].rank, {"muon.outer"});
  if (outer.empty() || first[0].step > kFirstSteps) return std::nullopt;
  Cause cause;
  cause.text = ", and Muon updates " + outer;
  std::replace(cause.text.begin() + 2, cause.text.end(), '\n', ' ');
  cause.evidence.push_back(
      "Muon makes every update of a matrix equally large in all directions; for an embedding (most rows have "
      "no gradient) "
      "and an output layer that is far too much. Judged: it showed within the first " +
      std::to_string(kFirstSteps) + " steps");
  cause.fix.push_back(
      "Let Adam update them: DeepSpeed leaves parameters to it whose name holds `embed` or `lm_head` "
      "(deepspeed.initialize sets use_muon by the name), so call the modules that; where you make the groups "
      "yourself "
      "(MuonWithAuxAdam), write \"use_muon\": false into the group of embeddings and heads.");
  add_learning_remedies(cause);
  return cause;
}

std::optional<Cause> of_half_precision(const std::vector<Seen>& first) {
  const Seen& seen = first[0];
  const NumberFact& fact = seen.first();
  if (!in_half_precision(fact)) return std::nullopt;
  Cause cause;
  std::int64_t good = fact.whole("good").value_or(0);
  cause.text = ", in fp16";
  if (good)
    cause.text += ", after " + std::to_string(good) + " finite losses: activations have outgrown fp16";
  cause.evidence.push_back(
      "fp16 ends at 65504; what is larger becomes infinite, and the difference of two such is nan. "
      "Judged: the model computes in fp16" +
      std::string(good ? ", and its first " + std::to_string(good) + " losses were finite" : ""));
  cause.fix.push_back(
      "Train in bf16, which reaches as far as fp32: \"bf16\": {\"enabled\": true} instead of \"fp16\" in "
      "ds_config, bf16=True "
      "in TrainingArguments, torch.autocast(\"cuda\", dtype=torch.bfloat16).");
  add_learning_remedies(cause);
  return cause;
}

Cause unknown_cause(const std::vector<Seen>& first) {
  Cause cause;
  bool at_once = !first[0].by_norm && first[0].loss.whole("good").value_or(0) == 0;
  if (at_once) {
    cause.fix.push_back(
        "It is so from the first step: look at what the loader gives (fields that are made on the device are "
        "not looked at "
        "here), at weights that were never set (torch.empty), and at masks that leave no element (a mean "
        "over none).");
  }
  add_learning_remedies(cause);
  cause.fix.push_back(
      "Look in the module that is named for a division by 0, a logarithm or root of 0, an attention mask "
      "that hides a whole "
      "row; torch.autograd.set_detect_anomaly(True) names the operation in backward.");
  return cause;
}

// A gradient norm that jumped shortly before: the learning rate, or one sample.
const Finding* jump_before(const Work& work, std::int64_t step) {
  for (const Finding& f : work.findings) {
    if (f.type == "grad-norm-spike" && f.step && *f.step <= step && *f.step + 20 >= step) return &f;
  }
  return nullptr;
}

std::vector<std::string> evidence_of_training(const std::vector<Seen>& all, std::size_t firsts) {
  const Seen& seen = all[0];
  std::vector<std::string> evidence;
  const NumberFact& fact = seen.first();
  std::string kinds = "computed with parameters of " + fact.text("model");
  if (!fact.text("autocast").empty()) kinds += " under autocast to " + fact.text("autocast");
  if (!fact.text("last").empty()) kinds += "; the loss before it was " + fact.text("last");
  if (!fact.text("lr").empty()) kinds += "; learning rate " + fact.text("lr");
  evidence.push_back(kinds);
  for (std::size_t i = firsts; i < all.size(); ++i) {
    if (all[i].step == seen.step) continue;
    evidence.push_back("the others followed from step " + std::to_string(all[i].step) + " on");
    break;
  }
  for (std::size_t i = 0; i < firsts; ++i) {
    if (!all[i].module) continue;
    evidence.push_back(job::ranks_text({all[i].rank->rank}) + ": " + module_text(all[i].module));
    break;
  }
  if (seen.parameters && seen.parameters.whole("bad").value_or(0) > 0) {
    evidence.push_back(seen.parameters.text("bad") + " of " + seen.parameters.text("of") +
                       " parameters are not finite in step " + seen.parameters.text("step") + " (" +
                       seen.parameters.text("first") +
                       " is the first): the run cannot recover, go back to a checkpoint");
  } else if (seen.parameters) {
    evidence.push_back("the parameters were still finite in step " + seen.parameters.text("step"));
  }
  return evidence;
}

void tell_training(Work& work) {
  std::vector<Seen> all = seen_in_training(work.view);
  if (all.empty()) return;
  std::vector<Seen> first;
  for (const Seen& seen : all) {
    if (seen.step == all[0].step && seen.by_norm == all[0].by_norm) first.push_back(seen);
  }
  std::optional<Cause> cause = of_batch(first);
  if (!cause) cause = of_ids(first);
  const Finding* jump = cause ? nullptr : jump_before(work, all[0].step);
  if (!cause) cause = of_muon(work.view, first);
  if (!cause && !jump) cause = of_half_precision(first);
  if (!cause) cause = unknown_cause(first);

  Finding f;
  f.type = "nan";
  f.subject = "training";
  f.certainty = Certainty::kProven;
  f.class_certainty = cause->proven ? Certainty::kProven : Certainty::kJudged;
  f.step = all[0].step;
  std::vector<Rank> ranks;
  for (const Seen& seen : first) ranks.push_back(seen.rank->rank);
  std::sort(ranks.begin(), ranks.end());
  f.suspects = cause->suspects;
  if (f.suspects.empty() && first.size() < all.size()) f.suspects = ranks;
  std::sort(f.suspects.begin(), f.suspects.end());
  bool again = std::all_of(all.begin(), all.end(), [](const Seen& seen) {
    return seen.loss ? !seen.losses.text("finite_again").empty() : seen.norm.text("skipped") == "1";
  });
  f.severity = again ? Severity::kWarning : Severity::kError;
  f.summary = std::string(first[0].by_norm ? "the gradient norm" : "the loss") + " of " +
              job::ranks_text(ranks) + " is " + value_of(first[0].first()) +
              (again ? " in step " : " from step ") + std::to_string(*f.step) + (again ? "" : " on") +
              cause->text;
  if (jump) f.summary += "; the gradient norm had jumped in step " + std::to_string(*jump->step);
  f.evidence = evidence_of_training(all, first.size());
  f.evidence.insert(f.evidence.end(), cause->evidence.begin(), cause->evidence.end());
  if (again) {
    f.evidence.push_back(all[0].loss ? "finite again in step " + all[0].losses.text("finite_again")
                                     : "the framework left the step out, and the losses are finite");
  }
  f.fix = cause->fix;
  if (jump) f.consequence_of = static_cast<std::size_t>(jump - work.findings.data());
  f.at = work.view.seconds(first[0].first().time_ns());
  work.findings.push_back(std::move(f));
}

std::string type_text(const std::string& model, const std::string& autocast) {
  return autocast.empty() ? model : autocast + " (autocast)";
}

// Training is finite, evaluation is not.
void tell_evaluation(Work& work) {
  std::vector<Rank> ranks;
  NumberFact fact, batch;
  for (const job::RankView* rank : real_ranks(work.view)) {
    NumberFact mine(work.view, *rank, "nan.evaluation");
    if (!mine || mine.whole("bad").value_or(0) > 0)
      continue;  // training is not finite either: it is told there
    if (ranks.empty() || !batch) fact = mine, batch = {work.view, *rank, "nan.other_batch"};
    ranks.push_back(rank->rank);
  }
  if (ranks.empty()) return;
  std::string type = type_text(fact.text("model"), fact.text("autocast"));
  std::string trained = type_text(fact.text("trained_model"), fact.text("trained_autocast"));
  Finding f;
  f.type = "nan";
  f.subject = "evaluation";
  f.severity = Severity::kError;
  f.certainty = Certainty::kProven;
  f.class_certainty = batch ? Certainty::kProven : Certainty::kJudged;
  f.step = fact.whole("step");
  f.summary = "the " + std::string(fact.text("loss").empty() ? "output" : "loss") + " of an evaluation is " +
              value_of(fact) + " on " + job::ranks_text(ranks) + " while training is finite";
  if (batch) {
    f.summary += ": batch " + batch.text("batch") + " of its loader holds values that are not finite in " +
                 field_text(batch);
    f.fix.push_back("Clean the evaluation data: these samples hold " + batch.text("bad") +
                    " values that are not finite.");
  } else if (type != trained && !trained.empty()) {
    f.summary += ": evaluated in " + type + ", trained in " + trained;
    f.evidence.push_back("judged: what the model computes in is all that is known to differ between both");
    f.fix.push_back(
        "Evaluate in the type of training: bf16=True and bf16_full_eval=True together in TrainingArguments; "
        "in a loop of your "
        "own model(...) as in training, under torch.autocast(\"cuda\", dtype=torch.bfloat16) if training "
        "was, without "
        "model.half().");
  } else {
    f.evidence.push_back("evaluated in " + type + ", as in training");
    f.fix.push_back(
        "Look at the evaluation's own data, and at what differs in model.eval(): running statistics of "
        "normalisation layers, "
        "a mask that leaves nothing to take the mean of.");
  }
  f.evidence.push_back(fact.text("good") + " losses of training were finite until then");
  f.at = work.view.seconds(fact.time_ns());
  work.findings.push_back(std::move(f));
}

// The lookup itself fails: on the CPU as an IndexError, on a device as an assertion of the kernel.
const job::Exception* failed_lookup(const JobView& view, const job::RankView& rank, std::uint64_t since_ns) {
  const auto& exceptions = rank.records().exceptions;
  for (std::uint64_t n = exceptions.first(); n < exceptions.end(); ++n) {
    const std::string& message = view.names().text(exceptions.at(n).message);
    bool of_index = message.find("device-side assert") != message.npos ||
                    message.find("index out of range") != message.npos;
    if (of_index && exceptions.at(n).time_ns >= since_ns) return &exceptions.at(n);
  }
  return nullptr;
}

// Ids without a row in the embedding, of a batch behind which a lookup failed.
void tell_ids(Work& work) {
  const JobView& view = work.view;
  for (const job::RankView* rank : real_ranks(view)) {
    NumberFact ids(view, *rank, "ids.range");
    const job::Exception* failed = ids ? failed_lookup(view, *rank, ids.time_ns()) : nullptr;
    if (!failed || NumberFact(view, *rank, "nan.loss")) continue;
    Cause cause = cause_in_ids(*rank, ids);
    Finding f;
    f.type = "nan";
    f.subject = "ids";
    f.severity = Severity::kError;
    f.certainty = Certainty::kProven;
    f.class_certainty = Certainty::kJudged;
    if (failed->step != job::kNoStep) f.step = failed->step;
    f.suspects = cause.suspects;
    f.summary = "a lookup failed on " + job::ranks_text(f.suspects) + cause.text;
    f.evidence.push_back("its error: " + view.names().text(failed->message));
    f.evidence.push_back("judged: ids are recognised by the name of their field");
    f.fix = cause.fix;
    f.at = view.seconds(ids.time_ns());
    work.findings.push_back(std::move(f));
    std::size_t at = work.findings.size() - 1;
    for (std::size_t i = 0; i < at; ++i) {
      Finding& other = work.findings[i];
      bool mine = std::count(other.suspects.begin(), other.suspects.end(), rank->rank) > 0;
      if (mine && !other.consequence_of && other.severity >= Severity::kError &&
          other.at >= work.findings[at].at - 1)
        other.consequence_of = at;
    }
    return;
  }
}

void run(Work& work) {
  tell_training(work);
  tell_evaluation(work);
  tell_ids(work);
}

}  // namespace

DSHANG_DETECTOR(116, "nan", run);

}  // namespace dshang::detect
