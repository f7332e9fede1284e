// Why WAL: `study show` reads while `map` writes. Why synchronous=FULL: every commit syncs the log before it returns,
// so a finished point survives not only kill -9 (the page cache already saves it) but a power cut, as far as the disk
// honours fsync; a study commits a few times a minute, so the sync costs nothing that anyone would notice. A schema is
// made in one transaction: a file is a whole empty study or, to the next open, still nothing.
#include "store/study.h"

#include <algorithm>
#include <cstring>

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "metrics/request_metrics.h"
#include "store/codec.h"

namespace goodput {
namespace {

constexpr int kApplicationId = 0x67707374;  // "gpst", in the header of the file: what `file` and we know it by
constexpr int kSchemaVersion = 1;

constexpr const char* kSchema = R"sql(
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE points (
  id INTEGER PRIMARY KEY,
  phase TEXT NOT NULL,
  key TEXT NOT NULL UNIQUE,
  settings TEXT NOT NULL,          -- JSON
  offered_rate REAL NOT NULL,      -- requests/s
  seed INTEGER NOT NULL,           -- 64 bits; SQLite shows them signed
  executor TEXT NOT NULL,
  schedule_hash TEXT NOT NULL,
  summary TEXT NOT NULL,           -- JSON, as map --json shows the point
  records_hash TEXT NOT NULL,      -- SHA-256 over the records, in hex; empty: none
  finished_at INTEGER NOT NULL);   -- Unix seconds
CREATE TABLE requests (
  point INTEGER NOT NULL REFERENCES points (id),
  idx INTEGER NOT NULL,            -- position in the schedule
  cls INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  scheduled_ms REAL NOT NULL,      -- since the point's first scheduled request
  ttft_ms REAL, e2e_ms REAL, output_tokens INTEGER,
  record BLOB NOT NULL,            -- everything that is known of it
  PRIMARY KEY (point, idx)) WITHOUT ROWID;
CREATE TABLE steps (
  point INTEGER PRIMARY KEY REFERENCES points (id),
  count INTEGER NOT NULL,
  hash TEXT NOT NULL,              -- SHA-256 over log, in hex
  log BLOB NOT NULL);
)sql";

// SQLite's trouble in the words of the person who has to do something about it.
Error explain(const SQLite::Exception& e, const std::filesystem::path& path) {
  const std::string where = path.string();
  const int seconds_waited = static_cast<int>(to_seconds(limits::kStudyBusyWait));
  switch (e.getErrorCode()) {
    case SQLITE_NOTADB:
      return {ErrorCode::kUsage, "not a study file (not a SQLite database): name another file", where};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::kIo,
              fmt::format("another process holds the study file and did not let go within {} s: end it (`fuser` names "
                          "it) or write to another folder",
                          seconds_waited),
              where};
    case SQLITE_FULL:
      return {ErrorCode::kIo,
              "the disk is full; nothing was half-written: free some space, then continue with --resume", where};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return {ErrorCode::kIo,
              fmt::format("cannot be opened for writing ({}): check that the folder exists and may be written",
                          std::strerror(errno ? errno : EACCES)),
              where};
    case SQLITE_CORRUPT:
      return {ErrorCode::kFailed,
              fmt::format("the study file is damaged ({}): `goodput study verify` says how far", e.getErrorStr()),
              where};
    case SQLITE_IOERR:
      return {
          ErrorCode::kIo,
          fmt::format("reading or writing failed ({}): is the disk full or over its quota? Nothing was half-written",
                      e.getErrorStr()),
          where};
    default:
      return {ErrorCode::kFailed, fmt::format("SQLite: {}", e.what()), where};
  }
}

// Runs `work` and turns SQLite's exceptions into errors: none leaves this file.
template <class Work>
auto guarded(const std::filesystem::path& path, Work work) -> decltype(work()) {
  try {
    errno = 0;
    return work();
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(explain(e, path));
  }
}

std::optional<double> ms(std::optional<Nanos> n) { return n ? std::optional<double>(to_ms(*n)) : std::nullopt; }

void bind(SQLite::Statement& s, int column, std::optional<double> value) {
  value ? s.bind(column, *value) : s.bind(column);
}

std::string_view blob(const SQLite::Column& column) {
  return {static_cast<const char*>(column.getBlob()), static_cast<size_t>(column.getBytes())};
}

// Records in the order of the schedule, whatever order they ended in.
std::vector<const RequestRecord*> by_index(const std::vector<RequestRecord>& records) {
  std::vector<const RequestRecord*> sorted;
  for (const RequestRecord& r : records)
    sorted.push_back(&r);
  std::ranges::stable_sort(sorted, {}, &RequestRecord::index);
  return sorted;
}

// Writes the records of a point and returns their hash.
std::string insert_records(SQLite::Database& db, int64_t point, const std::vector<RequestRecord>& records) {
  if (records.empty())
    return {};
  SQLite::Statement insert(db, "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  const auto sorted = by_index(records);
  TimePoint first = sorted.front()->scheduled;
  for (const RequestRecord* r : sorted)
    first = std::min(first, r->scheduled);
  Sha256 hash;
  hash.update(codec::records_header(records.size()));
  for (const RequestRecord* r : sorted) {
    codec::Writer bytes;
    codec::write_record(bytes, *r);
    hash.update(bytes.out());
    insert.bind(1, point);
    insert.bind(2, static_cast<int64_t>(r->index));
    insert.bind(3, r->cls);
    insert.bind(4, std::string(to_string(r->outcome)));
    insert.bind(5, to_ms(r->scheduled - first));
    bind(insert, 6, ms(ttft(*r)));
    bind(insert, 7, ms(e2e(*r)));
    r->output_tokens ? insert.bind(8, r->output_tokens->count()) : insert.bind(8);
    insert.bindNoCopy(9, bytes.out().data(), static_cast<int>(bytes.out().size()));
    insert.exec();
    insert.reset();
  }
  return hash.hex();
}

void insert_steps(SQLite::Database& db, int64_t point, const std::vector<StepRecord>& steps) {
  if (steps.empty())
    return;
  const std::string log = encode_steps(steps);
  SQLite::Statement insert(db, "INSERT INTO steps VALUES (?, ?, ?, ?)");
  insert.bind(1, point);
  insert.bind(2, static_cast<int64_t>(steps.size()));
  insert.bind(3, sha256_hex(log));
  insert.bindNoCopy(4, log.data(), static_cast<int>(log.size()));
  insert.exec();
}

constexpr const char* kPointColumns =
    "id, phase, key, settings, offered_rate, seed, executor, schedule_hash, summary, records_hash";

PointRow point_row(SQLite::Statement& s) {
  PointRow row;
  row.id = s.getColumn(0).getInt64();
  row.phase = s.getColumn(1).getString();
  row.key = s.getColumn(2).getString();
  row.settings_json = s.getColumn(3).getString();
  row.offered_rate = s.getColumn(4).getDouble();
  row.seed = static_cast<uint64_t>(s.getColumn(5).getInt64());
  row.executor = s.getColumn(6).getString();
  row.schedule_hash = s.getColumn(7).getString();
  row.summary_json = s.getColumn(8).getString();
  row.records_hash = s.getColumn(9).getString();
  return row;
}

void insert_point(SQLite::Database& db, int64_t id, const PointRow& row) {
  SQLite::Statement insert(db, "INSERT INTO points VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(1, id);
  insert.bind(2, row.phase);
  insert.bind(3, row.key);
  insert.bind(4, row.settings_json);
  insert.bind(5, row.offered_rate);
  insert.bind(6, static_cast<int64_t>(row.seed));
  insert.bind(7, row.executor);
  insert.bind(8, row.schedule_hash);
  insert.bind(9, row.summary_json);
  insert.bind(10, row.records_hash);
  insert.bind(11, unix_seconds());
  insert.exec();
}

}  // namespace

struct Study::Impl {
  std::filesystem::path path;
  SQLite::Database db;
};

namespace {

// Makes the tables if the file is new; refuses what is not a study of this version.
Result<void> prepare(SQLite::Database& db, bool create, const std::filesystem::path& path) {
  const bool empty = db.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
  const int application = db.execAndGet("PRAGMA application_id").getInt();
  if (empty && application == 0 && create) {
    SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
    // Another process may have been quicker.
    if (db.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0) {
      db.exec(kSchema);
      db.exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
      db.exec(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
      transaction.commit();
    }
    return {};
  }
  if (application != kApplicationId)
    return fail(ErrorCode::kUsage,
                empty ? "an empty file, not a study" : "a SQLite database, but not a study: name another file",
                path.string());
  if (const int version = db.execAndGet("PRAGMA user_version").getInt(); version != kSchemaVersion)
    return fail(
        ErrorCode::kUsage,
        fmt::format("a study of schema version {}; this program reads version {}: use the goodput that wrote it",
                    version, kSchemaVersion),
        path.string());
  return {};
}

// A study in a place that cannot be written (an archive, another user's folder) still opens for reading: SQLite wants
// to make the WAL's index beside the file, unless told that nobody will write. That is safe only without a log.
bool readable_as_it_lies(const std::filesystem::path& path) {
  std::error_code none;
  const std::filesystem::path log = path.string() + "-wal";
  return std::filesystem::exists(path, none) &&
         (!std::filesystem::exists(log, none) || std::filesystem::file_size(log, none) == 0);
}

std::string immutable_uri(const std::filesystem::path& path) {
  std::string uri = "file:";
  for (const char c : path.string()) {
    if (c == '%' || c == '?' || c == '#')
      uri += fmt::format("%{:02x}", c);
    else
      uri += c;
  }
  return uri + "?immutable=1";
}

}  // namespace

Study::Study(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Study::~Study() = default;

Result<std::unique_ptr<Study>> Study::open(const std::filesystem::path& path, bool create) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none))
    return fail(ErrorCode::kUsage, "expected a study file, found a folder", path.string());
  if (!create && !std::filesystem::exists(path, none))
    return fail(ErrorCode::kNotFound, "there is no such study file", path.string());
  const int busy_ms = static_cast<int>(to_ms(limits::kStudyBusyWait));
  const auto opened = [&](const std::string& name, int flags) {
    return guarded(path, [&]() -> Result<std::unique_ptr<Study>> {
      std::unique_ptr<Impl> impl(new Impl{path, SQLite::Database(name, flags, busy_ms)});
      TRY(prepare(impl->db, create, path));
      if (!(flags & SQLite::OPEN_URI)) {
        impl->db.exec("PRAGMA journal_mode = WAL");
        impl->db.exec("PRAGMA synchronous = FULL");
        impl->db.exec("PRAGMA foreign_keys = ON");
      }
      return std::unique_ptr<Study>(new Study(std::move(impl)));
    });
  };
  auto study = opened(path.string(), SQLite::OPEN_READWRITE | (create ? SQLite::OPEN_CREATE : 0));
  if (study || create || study.error().code != ErrorCode::kIo || !readable_as_it_lies(path))
    return study;
  return opened(immutable_uri(path), SQLite::OPEN_READONLY | SQLite::OPEN_URI);
}

Result<void> Study::set_meta(std::string_view key, std::string_view value) {
  return guarded(impl_->path, [&]() -> Result<void> {
    SQLite::Statement insert(impl_->db,
                             "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value");
    insert.bind(1, std::string(key));
    insert.bind(2, std::string(value));
    insert.exec();
    return {};
  });
}

Result<std::optional<std::string>> Study::meta(std::string_view key) const {
  return guarded(impl_->path, [&]() -> Result<std::optional<std::string>> {
    SQLite::Statement select(impl_->db, "SELECT value FROM meta WHERE key = ?");
    select.bind(1, std::string(key));
    if (!select.executeStep())
      return std::nullopt;
    return select.getColumn(0).getString();
  });
}

Result<void> Study::add_point(PointRow& row, const std::vector<RequestRecord>& records,
                              const std::vector<StepRecord>& steps) {
  return guarded(impl_->path, [&]() -> Result<void> {
    SQLite::Transaction transaction(impl_->db, SQLite::TransactionBehavior::IMMEDIATE);
    if (TRY(find_point(row.key)))
      return fail(ErrorCode::kFailed, fmt::format("the study has a point \"{}\" already", row.key),
                  impl_->path.string());
    PointRow whole = row;
    whole.id = impl_->db.execAndGet("SELECT coalesce(max(id), 0) + 1 FROM points").getInt64();
    insert_point(impl_->db, whole.id, whole);
    whole.records_hash = insert_records(impl_->db, whole.id, records);
    insert_steps(impl_->db, whole.id, steps);
    SQLite::Statement seal(impl_->db, "UPDATE points SET records_hash = ? WHERE id = ?");
    seal.bind(1, whole.records_hash);
    seal.bind(2, whole.id);
    seal.exec();
    transaction.commit();
    row = std::move(whole);
    return {};
  });
}

Result<std::optional<PointRow>> Study::find_point(std::string_view key) const {
  return guarded(impl_->path, [&]() -> Result<std::optional<PointRow>> {
    SQLite::Statement select(impl_->db, fmt::format("SELECT {} FROM points WHERE key = ?", kPointColumns));
    select.bind(1, std::string(key));
    if (!select.executeStep())
      return std::nullopt;
    return point_row(select);
  });
}

Result<std::vector<PointRow>> Study::points() const {
  return guarded(impl_->path, [&]() -> Result<std::vector<PointRow>> {
    SQLite::Statement select(impl_->db, fmt::format("SELECT {} FROM points ORDER BY id", kPointColumns));
    std::vector<PointRow> rows;
    while (select.executeStep())
      rows.push_back(point_row(select));
    return rows;
  });
}

Result<std::vector<RequestRecord>> Study::records(int64_t point) const {
  return guarded(impl_->path, [&]() -> Result<std::vector<RequestRecord>> {
    SQLite::Statement select(impl_->db, "SELECT record FROM requests WHERE point = ? ORDER BY idx");
    select.bind(1, point);
    std::vector<RequestRecord> records;
    while (select.executeStep()) {
      codec::Reader reader(blob(select.getColumn(0)));
      records.push_back(codec::read_record(reader));
      if (reader.ok() && !reader.at_end())
        reader.refuse("more than one record");
      if (!reader.ok())
        return fail(ErrorCode::kFailed,
                    fmt::format("a stored request of point {} is damaged: {}", point, reader.problem()),
                    impl_->path.string());
    }
    return records;
  });
}

Result<std::vector<StepRecord>> Study::steps(int64_t point) const {
  return guarded(impl_->path, [&]() -> Result<std::vector<StepRecord>> {
    SQLite::Statement select(impl_->db, "SELECT log FROM steps WHERE point = ?");
    select.bind(1, point);
    if (!select.executeStep())
      return std::vector<StepRecord>{};
    return decode_steps(blob(select.getColumn(0)));
  });
}

Result<std::vector<std::string>> Study::verify() const {
  const std::vector<PointRow> rows = TRY(points());
  return guarded(impl_->path, [&]() -> Result<std::vector<std::string>> {
    SQLite::Statement select_steps(impl_->db, "SELECT hash, log FROM steps WHERE point = ?");
    std::vector<std::string> differing;
    for (const PointRow& row : rows) {
      const auto stored = records(row.id);
      bool whole = stored && (stored->empty() ? "" : records_hash(*stored)) == row.records_hash;
      select_steps.reset();
      select_steps.bind(1, row.id);
      if (select_steps.executeStep())
        whole = whole && sha256_hex(blob(select_steps.getColumn(1))) == select_steps.getColumn(0).getString();
      if (!whole)
        differing.push_back(row.key);
    }
    return differing;
  });
}

}  // namespace goodput
