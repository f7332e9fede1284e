// The mathematics of arrivals.h. Pure but for the random stream; one thread per object.
#include "workload/arrivals.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace goodput {
namespace {

constexpr double kForEver = std::numeric_limits<double>::infinity();

bool is_constant(ArrivalKind kind, double burstiness) {
  return kind == ArrivalKind::kConstant || (kind == ArrivalKind::kGamma && std::isinf(burstiness));
}

}  // namespace

Nanos arrival_time(double s) { return from_seconds(std::min(s, 1e9)); }

UnitArrivals::UnitArrivals(ArrivalKind kind, double burstiness, uint64_t seed)
    : constant_(is_constant(kind, burstiness)),
      gamma_(kind == ArrivalKind::kGamma),
      burstiness_(burstiness),
      random_(seed, "arrivals") {}

double UnitArrivals::gap() {
  if (constant_)
    return 1;
  return gamma_ ? random_.gamma(burstiness_, 1 / burstiness_) : random_.exponential(1.0);
}

double UnitArrivals::next() {
  // Constant times come from their own index, so that rounding never accumulates.
  if (constant_)
    return static_cast<double>(index_++);
  return now_ += gap();
}

RateProfile::RateProfile(const WorkloadSpec& w, std::optional<Nanos> duration) {
  for (const StageSpec& stage : w.stages)
    add(stage.rate, stage.rate, to_seconds(stage.duration));
  if (!w.stages.empty())
    return;
  if (w.ramp && w.ramp->by == RampSpec::By::kTime) {
    const Nanos over = w.ramp->over > Nanos(0) ? w.ramp->over : duration.value_or(seconds(1));
    add(w.ramp->from, w.ramp->to, to_seconds(over), w.ramp->shape == RampSpec::Shape::kExponential);
    add(w.ramp->to, w.ramp->to, kForEver);
    return;
  }
  add(w.rate, w.rate, kForEver);
}

void RateProfile::add(double from, double to, double length, bool exponential) {
  Piece piece{from, to, 0, length, exponential && from != to, 0};
  if (!pieces_.empty()) {
    const Piece& last = pieces_.back();
    piece.start = last.start + last.length;
    piece.units_before = last.units_before + last.units_after(last.length);
  }
  pieces_.push_back(piece);
}

double RateProfile::Piece::units_after(double s) const {
  if (from == to)
    return s == 0 || from == 0 ? 0 : from * s;
  if (exponential) {
    const double k = std::log(to / from) / length;
    return from * std::expm1(k * s) / k;
  }
  return from * s + (to - from) * s * s / (2 * length);
}

double RateProfile::Piece::seconds_for(double units) const {
  if (from == to)
    return units / from;
  if (exponential) {
    const double k = std::log(to / from) / length;
    return std::log1p(units * k / from) / k;
  }
  // The root of a quadratic in the form that cancels nothing.
  const double root = std::sqrt(std::max(0.0, from * from + 2 * (to - from) * units / length));
  return units == 0 ? 0 : 2 * units / (from + root);
}

std::optional<double> RateProfile::time_of(double units) {
  for (;; ++at_) {
    if (at_ == pieces_.size())
      return std::nullopt;
    const Piece& piece = pieces_[at_];
    if (std::isinf(piece.length) && piece.start == 0)
      return units / piece.from;
    const double within = units - piece.units_before;
    if (piece.from == 0 && piece.to == 0)
      continue;
    if (std::isinf(piece.length) || within < piece.units_after(piece.length))
      return piece.start + std::min(piece.seconds_for(within), piece.length);
  }
}

double RateProfile::units_by(double s) const {
  double units = 0;
  for (const Piece& piece : pieces_)
    if (s > piece.start)
      units = piece.units_before + piece.units_after(std::min(s - piece.start, piece.length));
  return units;
}

Arrivals::Arrivals(const WorkloadSpec& w, uint64_t seed, std::optional<Nanos> duration)
    : unit_(w.arrivals, w.burstiness, seed), profile_(w, duration) {}

Result<Arrivals> Arrivals::create(const WorkloadSpec& w, uint64_t seed, std::optional<Nanos> duration,
                                  std::optional<uint64_t> requests) {
  Arrivals arrivals(w, seed, duration);
  const bool by_index = w.stages.empty() && w.ramp && w.ramp->by == RampSpec::By::kIndex;
  if ((by_index || w.rescale) && !requests)
    return fail(ErrorCode::kUsage,
                by_index ? "a ramp by index needs a number of requests: its progress is their share"
                         : "rescaled arrivals need a number of requests: the last of them lands on number/rate");
  if (w.stages.empty() && w.ramp && !by_index && w.ramp->over == Nanos(0) && !duration)
    return fail(ErrorCode::kUsage, "a ramp by time needs `over`, or a run with a duration");
  if (by_index) {
    arrivals.by_index_ = *w.ramp;
    arrivals.requests_ = *requests;
  }
  if (w.rescale) {
    // The sum is known only after all gaps: drawn once ahead, from the same stream.
    UnitArrivals ahead(w.arrivals, w.burstiness, seed);
    double total = 0;
    for (uint64_t i = 0; i < *requests; ++i)
      total += ahead.gap();
    arrivals.scale_ = total > 0 ? static_cast<double>(*requests) / total : 1;
    arrivals.first_after_a_gap_ = is_constant(w.arrivals, w.burstiness);
  }
  return arrivals;
}

double Arrivals::index_rate() const {
  const double progress = requests_ > 1 ? static_cast<double>(index_) / static_cast<double>(requests_ - 1) : 1;
  const RampSpec& ramp = *by_index_;
  if (ramp.shape == RampSpec::Shape::kExponential)
    return ramp.from * std::pow(ramp.to / ramp.from, progress);
  return ramp.from + (ramp.to - ramp.from) * progress;
}

std::optional<Nanos> Arrivals::next() {
  if (by_index_) {
    const double gap = unit_.gap(), rate = index_rate();
    ++index_;
    by_index_now_ += rate > 0 ? gap / rate : 0;  // vLLM's ramp from 0 sends its first request at once
    return arrival_time(by_index_now_);
  }
  const auto at = profile_.time_of((unit_.next() + (first_after_a_gap_ ? 1 : 0)) * scale_);
  return at ? std::optional(arrival_time(*at)) : std::nullopt;
}

double Arrivals::expected_by(Nanos duration) const {
  if (by_index_)
    return static_cast<double>(requests_);
  return profile_.units_by(to_seconds(duration));
}

}  // namespace goodput
