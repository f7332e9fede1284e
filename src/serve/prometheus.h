// The text exposition format of Prometheus (version 0.0.4), written by hand: the client library in Debian brings a web
// server and curl with it for this one page.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace goodput {

// One kind of metric; docs and output derive from rows like this.
struct MetricRow {
  std::string_view name, type, help;  // type: gauge, counter, histogram
};

// Counts per bucket; `bounds` are inclusive upper bounds, ascending, with static lifetime. One thread.
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}
  void observe(double value);
  std::span<const double> bounds() const { return bounds_; }
  uint64_t count_in(size_t bucket) const { return counts_[bucket]; }  // bounds().size(): above all bounds
  double sum() const { return sum_; }
  // For what another thread counted in the same buckets.
  void add(size_t bucket, uint64_t count) { counts_[bucket] += count; }
  void add_sum(double sum) { sum_ += sum; }

 private:
  std::span<const double> bounds_;
  std::vector<uint64_t> counts_;
  double sum_ = 0;
};

using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

// Builds one page. Samples of a metric must follow each other, as the format demands.
class Exposition {
 public:
  explicit Exposition(Labels common) : common_(std::move(common)) {}
  void sample(const MetricRow&, double value, const Labels& = {});
  void histogram(const MetricRow&, const Histogram&);
  std::string take() { return std::move(page_); }

 private:
  void head(const MetricRow&);
  void line(std::string_view name, std::string_view suffix, const Labels&, double value);

  Labels common_;
  std::string page_;
  std::string_view current_;
};

}  // namespace goodput
