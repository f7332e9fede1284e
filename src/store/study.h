// The study file: SQLite, WAL. A point is a transaction: finished and safe, or not there. Row structs only; no SQLite
// type leaves this room.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "metrics/record.h"

namespace goodput {

// One measured or simulated point.
struct PointRow {
  int64_t id = 0;     // assigned
  std::string phase;  // "probe", "screen", "measure", "confirm", "background"
  std::string key;    // unique per (phase, settings, rate, seed): what --resume looks for
  std::string settings_json;
  double offered_rate = 0;
  uint64_t seed = 0;
  std::string executor;  // "llama" | "simulated" | "remote"
  std::string schedule_hash;
  std::string summary_json;  // the point as map --json shows it
  std::string records_hash;  // SHA-256 over its records, 64 hex digits; empty: none stored
};

class Study {
 public:
  // Creates or opens. kIo: unwritable, full disk; kUsage: not a study file, or of another schema version.
  static Result<std::unique_ptr<Study>> open(const std::filesystem::path&, bool create);
  ~Study();

  Result<void> set_meta(std::string_view key, std::string_view value);
  Result<std::optional<std::string>> meta(std::string_view key) const;

  // Writes the point, its records and steps in one transaction; fills row.id and row.records_hash.
  Result<void> add_point(PointRow&, const std::vector<RequestRecord>&, const std::vector<StepRecord>&);
  Result<std::optional<PointRow>> find_point(std::string_view key) const;
  Result<std::vector<PointRow>> points() const;                     // by id
  Result<std::vector<RequestRecord>> records(int64_t point) const;  // by index
  Result<std::vector<StepRecord>> steps(int64_t point) const;       // by start
  // Recomputes every stored point's records hash; the keys of those that differ.
  Result<std::vector<std::string>> verify() const;

 private:
  struct Impl;
  explicit Study(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

// SHA-256 over the canonical encoding of the records, in order.
std::string records_hash(const std::vector<RequestRecord>&);
// A compact, versioned binary encoding of records and steps: what the generator's and the server's processes hand over.
std::string encode_records(const std::vector<RequestRecord>&);
Result<std::vector<RequestRecord>> decode_records(std::string_view);
std::string encode_steps(const std::vector<StepRecord>&);
Result<std::vector<StepRecord>> decode_steps(std::string_view);

}  // namespace goodput
