// Whole files, with errors that name the path. Writing replaces atomically: a reader sees the old file or the new
// one, never half of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace goodput {

// Refuses directories and files above `max_bytes` before reading them.
Result<std::string> read_file(const std::filesystem::path& path, uint64_t max_bytes);
// Writes beside the target, syncs, renames over it; on failure the target is untouched and no scrap stays.
// Devices and pipes (/dev/stdout) cannot be replaced and are written to; a link's target is replaced, not the link.
Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view bytes);
// Makes the folder and its parents; an error says why (not a folder, no permission).
Result<void> make_directories(const std::filesystem::path& path);
// $XDG_CACHE_HOME/goodput, else $HOME/.cache/goodput, else /tmp/goodput-<uid>.
std::filesystem::path cache_directory();

}  // namespace goodput
