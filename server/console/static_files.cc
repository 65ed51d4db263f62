// SPDX-License-Identifier: Apache-2.0
#include "server/console/static_files.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "server/console/etag.h"
#include "server/console/problem.h"

namespace pnfsrdma::console {

namespace {

constexpr size_t kBytesMax = 16 << 20;
constexpr std::string_view kNoConsole =
    "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>pnfsrdma</title></head><body>"
    "<h1>pnfsrdma</h1><p>The web console is not installed here (configuration key "
    "<code>console.web_directory</code>). The <a href=\"/api/v1/\">REST API</a> and the program "
    "<code>pnfsrdma</code> can do the same.</p></body></html>";

std::string media_type(const std::string& extension) {
  static const std::map<std::string, std::string> types{{".html", "text/html; charset=utf-8"},
                                                        {".js", "text/javascript; charset=utf-8"},
                                                        {".mjs", "text/javascript; charset=utf-8"},
                                                        {".css", "text/css; charset=utf-8"},
                                                        {".json", "application/json"},
                                                        {".map", "application/json"},
                                                        {".svg", "image/svg+xml"},
                                                        {".png", "image/png"},
                                                        {".ico", "image/x-icon"},
                                                        {".txt", "text/plain; charset=utf-8"},
                                                        {".webmanifest", "application/manifest+json"},
                                                        {".woff2", "font/woff2"}};
  const auto found = types.find(extension);
  return found == types.end() ? "application/octet-stream" : found->second;
}

}  // namespace

Result<StaticFiles> StaticFiles::load(const std::string& directory) {
  namespace fs = std::filesystem;
  StaticFiles loaded;
  std::error_code error;
  if (directory.empty() || !fs::is_directory(directory, error)) return loaded;
  size_t bytes = 0;
  for (auto at = fs::recursive_directory_iterator(directory, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (!at->is_regular_file(error)) continue;
    std::ifstream stream(at->path(), std::ios::binary);
    File file{.type = media_type(at->path().extension()),
              .bytes = {std::istreambuf_iterator<char>(stream), {}},
              .etag = {}};
    bytes += file.bytes.size();
    if (bytes > kBytesMax) return fail(EFBIG, "the web console in " + directory + " is over 16 MiB");
    file.etag = etag_of_text(file.bytes);
    loaded.files_["/" + fs::relative(at->path(), directory, error).generic_string()] = std::move(file);
  }
  if (error) return fail(error.value(), "reading the web console in " + directory);
  return loaded;
}

HttpResponse StaticFiles::get(const HttpRequest& request) const {
  if (files_.empty() && request.path == "/")
    return {.content_type = "text/html; charset=utf-8", .body = std::string(kNoConsole)};
  auto found = files_.find(request.path);
  const bool page = request.path.find('.', request.path.rfind('/')) == std::string::npos;
  if (found == files_.end() && page) found = files_.find("/index.html");
  if (found == files_.end())
    return to_response({.name = "not-found", .detail = "There is no file " + request.path + "."});
  const File& file = found->second;
  // Built files carry a hash in their names; the page that names them is asked for each time.
  const bool hashed = found->first.starts_with("/assets/");
  HttpResponse response{.content_type = file.type, .body = file.bytes};
  response.with("ETag", file.etag)
      .with("Cache-Control", hashed ? "public, max-age=31536000, immutable" : "no-cache");
  if (request.header("if-none-match") == file.etag) {
    response.status = 304;
    response.body.clear();
  }
  return response;
}

}  // namespace pnfsrdma::console
