// For tests: a folder that goes away, and synthetic models in it.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "model/model.h"
#include "model/synth.h"

namespace goodput {

class Folder {
 public:
  Folder() {
    std::string name = ::testing::TempDir() + "goodput-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void put_bytes(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// A tiny model, made once per test program.
inline const std::filesystem::path& tiny_file() {
  static const Folder folder;
  static const std::filesystem::path path = [] {
    auto written = write_synthetic_model(folder / "tiny.gguf", {});
    EXPECT_TRUE(written) << (written ? "" : describe(written.error()));
    return folder / "tiny.gguf";
  }();
  return path;
}

inline std::shared_ptr<const Model> tiny_model() {
  static const std::shared_ptr<const Model> model = [] {
    auto loaded = Model::load(tiny_file());
    EXPECT_TRUE(loaded) << (loaded ? "" : describe(loaded.error()));
    return *loaded;
  }();
  return model;
}

}  // namespace goodput
