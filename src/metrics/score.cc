// See score.h. Runs over every record of every point that a search looks at: no allocation per record.
#include "metrics/score.h"

namespace goodput {

ClassScore& ClassScore::operator+=(const ClassScore& o) {
  scheduled += o.scheduled;
  good += o.good;
  unmeasurable += o.unmeasurable;
  not_applicable += o.not_applicable;
  good_tokens += o.good_tokens;
  return *this;
}

std::vector<ClassScore> score(std::span<const RequestRecord> records, std::span<const ClassRule> classes, Window window,
                              bool strict) {
  std::vector<ClassScore> scores(classes.size() + 1);
  for (const RequestRecord& r : records) {
    if (!window.contains(r.scheduled))
      continue;
    if (r.cls >= classes.size()) {
      ++scores.back().scheduled;
      continue;
    }
    ClassScore& s = scores[r.cls];
    ++s.scheduled;
    const Judgement j = judge(r, classes[r.cls].targets, strict);
    s.not_applicable += static_cast<uint64_t>(j.not_applicable);
    s.unmeasurable += j.goodness == Goodness::kUnmeasurable;
    if (j.goodness != Goodness::kGood)
      continue;
    ++s.good;
    s.good_tokens += r.output_tokens.value_or(Tokens{0}).count();
  }
  return scores;
}

ClassScore total(std::span<const ClassScore> scores) {
  ClassScore sum;
  for (const ClassScore& s : scores)
    sum += s;
  return sum;
}

double per_second(double count, Window window) {
  const double length = window.length_s();
  return length > 0 ? count / length : 0;
}

double interactive_goodput(std::span<const ClassScore> scores, std::span<const ClassRule> classes, Window window) {
  uint64_t good = 0;
  for (size_t c = 0; c < classes.size(); ++c)
    if (classes[c].targets.interactive())
      good += scores[c].good;
  return per_second(static_cast<double>(good), window);
}

AttainmentOnly quick_attainment(std::span<const RequestRecord> records, std::span<const ClassRule> classes,
                                Window window, bool strict) {
  const std::vector<ClassScore> scores = score(records, classes, window, strict);
  const ClassScore all = total(scores);
  const auto count_of = [](const ClassScore& s) {
    return Count{static_cast<double>(s.good), static_cast<double>(s.scheduled)};
  };
  AttainmentOnly out;
  out.overall = count_of(all);
  for (size_t c = 0; c < classes.size(); ++c)
    out.by_class.push_back(count_of(scores[c]));
  out.unmeasurable = all.unmeasurable;
  out.goodput_rps = per_second(static_cast<double>(all.good), window);
  out.token_goodput = per_second(static_cast<double>(all.good_tokens), window);
  out.interactive_goodput_rps = interactive_goodput(scores, classes, window);
  out.regime = regime_of(records, window);
  return out;
}

}  // namespace goodput
