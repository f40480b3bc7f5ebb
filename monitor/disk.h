// Small operations on files.  Everything made here can be read by its owner alone.
//
// Failure: throws DiskError, whose text names the path and the reason.
#pragma once

#include <stdexcept>
#include <string>

namespace dshang::monitor {

struct DiskError : std::runtime_error {
  using std::runtime_error::runtime_error;
  DiskError(const std::string& path, int error);
};

// The directory and its parents; an existing one stays as it is.
void make_directories(const std::string& path);

// False when it exists already.
bool make_directory(const std::string& path);

// A directory in a place where others can write too: ours, no link, closed to others.
void make_private_directory(const std::string& path);

// A reader sees the old content or the new one, never a part.
void replace_file(const std::string& path, const std::string& content);

void append_to_file(const std::string& path, const std::string& content);

// A symbolic link that never is missing while it changes.
void replace_link(const std::string& link, const std::string& target);

// Longest file that is read: far more than a flight memory or a journal takes.
inline constexpr std::size_t kMostBytesRead = std::size_t{1} << 28;

// Throws std::runtime_error when it cannot be read, is no regular file, or is longer than `most` bytes.
std::string read_file(const std::string& path, std::size_t most = kMostBytesRead);

// Highest <n> of the entries attempt-<n> in `directory`, 0 = none.
int newest_attempt(const std::string& directory);

// Makes <link_directory>/<name> point to attempt-<attempt>/<name> unless it already points to a later
// attempt's.  False: there is something else of that name, which stays as it is.
bool point_to_attempt(const std::string& link_directory, const std::string& name, int attempt);

}  // namespace dshang::monitor
