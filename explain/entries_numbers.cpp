// What the reported losses and gradient norms say.
#include "explain/hits.h"
#include "explain/words.h"

namespace dshang::explain {
namespace {

Hits::Hit hit_of(const Numbers::Event& event, const std::string& summary) {
  Hits::Hit hit;
  hit.place = event.place;
  hit.speakers = {event.who};
  hit.summary = summary;
  hit.text = event.text;
  return hit;
}

void nan_later(const Entry&, const Observed& seen, Hits& hits) {
  const Numbers& numbers = seen.numbers;
  if (numbers.nan_first) return;
  if (numbers.nan_later)
    return hits.add(hit_of(*numbers.nan_later, numbers.nan_later->before
                                                   ? "the loss becomes NaN after " +
                                                         counted(numbers.nan_later->before, "finite value")
                                                   : "the loss becomes NaN after infinite values"));
  // fp16's scaler skips steps whose gradients are not finite, which is no fault.
  if (numbers.nan_gradients && !numbers.overflows())
    hits.add(hit_of(*numbers.nan_gradients, "the gradient norm is not finite, three reports in a row"));
}

void nan_first(const Entry&, const Observed& seen, Hits& hits) {
  if (seen.numbers.nan_first) hits.add(hit_of(*seen.numbers.nan_first, "the first reported loss is NaN"));
}

void nan_in_evaluation(const Entry&, const Observed& seen, Hits& hits) {
  const Numbers& numbers = seen.numbers;
  if (numbers.nan_in_evaluation && !numbers.nan_first && !numbers.nan_later)
    hits.add(hit_of(*numbers.nan_in_evaluation, "the evaluation's loss is NaN, that of training is not"));
}

void shrinking_scale(const Entry&, const Observed& seen, Hits& hits) {
  const auto& shrinking = seen.numbers.shrinking;
  if (!shrinking) return;
  std::string text = counted(shrinking->times, "step") + " skipped because of overflow";
  if (shrinking->to > 0)
    text +=
        ", the loss scale falling from " + number_text(shrinking->from) + " to " + number_text(shrinking->to);
  hits.add(hit_of(*shrinking, text));
}

void spike(const Entry&, const Observed& seen, Hits& hits) {
  const auto& spike = seen.numbers.spike;
  if (spike)
    hits.add(hit_of(*spike, "the gradient norm jumps to " + number_text(spike->value) +
                                ", from a median of " + number_text(spike->median)));
}

}  // namespace

const Entries& number_entries() {
  static const Entries entries = {
      {"12.5-1",
       Severity::kWrongResult,
       "the loss becomes NaN",
       {},
       "any",
       "the range of fp16 is exceeded, a bad sample, or the learning rate",
       "bf16 in the place of fp16; else a lower learning rate, and keep gradient_clipping on (1.0 by default "
       "since "
       "DeepSpeed 0.19.5). Look at the batch of that step.",
       "docs/findings.md, nan",
       Role::kCause,
       {},
       nan_later},
      {"12.5-2",
       Severity::kWrongResult,
       "the loss is NaN from the start",
       {},
       "any",
       "all labels masked (-100), bad input, weights not initialised, a token id beyond the vocabulary, a "
       "model made for "
       "bf16 in fp16 (and Muon on embeddings before DeepSpeed 0.18.5)",
       "Check one batch: isfinite, the number of labels that are not -100, the largest token id.",
       "docs/findings.md, nan",
       Role::kCause,
       {},
       nan_first},
      {"12.5-3",
       Severity::kWrongResult,
       "the loss is NaN in evaluation only",
       {},
       "any",
       "a batch of the evaluation whose labels are all masked, or an incomplete last one",
       "Look at the evaluation's data first. bf16_full_eval matters only where evaluate() runs without "
       "train().",
       "transformers, Trainer",
       Role::kCause,
       {},
       nan_in_evaluation},
      {"12.5-4",
       Severity::kSlow,
       "the loss scale keeps shrinking",
       {},
       "DeepSpeed 0.10-0.19.8",
       "gradients overflow fp16 at every scale: training makes no progress",
       "bf16; or mend the divergence. A higher initial_scale_power makes it worse.",
       "DeepSpeed, fp16/loss_scaler.py",
       Role::kCause,
       {},
       shrinking_scale},
      {"12.5-5",
       Severity::kWrongResult,
       "the gradient norm explodes",
       {},
       "any",
       "an outlying sample, or the learning rate",
       "`\"gradient_clipping\": 1.0` (Hugging Face: max_grad_norm), and look at the batch.",
       "docs/findings.md, grad-norm-spike",
       Role::kCause,
       {},
       spike},
      {"X-06",
       Severity::kWillFail,
       "the loss scale is at its minimum",
       {{R"(Current loss scale already at minimum - cannot decrease scale anymore)"}},
       "DeepSpeed 0.10-0.19.8",
       "every recent gradient is infinite or NaN",
       "bf16 (a model trained in bf16 must not be tuned in fp16); else a lower learning rate and a look at "
       "the data.",
       "modelscope/ms-swift#4374; deepspeedai/DeepSpeed#1958, #4017"},
  };
  return entries;
}

}  // namespace dshang::explain
