// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <span>
#include <string>
#include <string_view>

#include "server/console/answer_cache.h"
#include "server/console/backend.h"
#include "server/console/call.h"
#include "server/console/repeated_requests.h"
#include "server/console/static_files.h"

namespace pnfsrdma::console {

// Whether all who may ask get the same answer, so that it may be an AnswerCache's.
enum class Answers { kOfEachCaller, kShared };

// One operation of the API: what the document says of it, and who answers.
struct Route {
  std::string_view method;
  std::string_view path;  // below /api/v1, with {parameters}
  std::string_view id;    // operationId
  Role role;
  Answer<HttpResponse> (*respond)(Backend&, Call&);
  Answers answers = Answers::kOfEachCaller;
};
// All of them; a test compares them with the document.
std::span<const Route> routes();

using PathParameters = std::vector<std::pair<std::string, std::string>>;

// From a request to its answer: finds the operation, asks who calls, whether they may and whether the request
// is as the document has it; answers, and writes what was changed into the audit log before the answer goes.
// Called from many threads.
class Api {
 public:
  Api(Backend& backend, const StaticFiles& files)
      : backend_(backend),
        files_(files),
        answers_(backend.clock),
        repeats_(backend.clock),
        refusals_(backend.clock) {}

  HttpResponse handle(const HttpRequest& request);

 private:
  Answer<HttpResponse> respond(const HttpRequest& request);
  Answer<HttpResponse> respond_api(const HttpRequest& request, std::string_view path);
  Answer<HttpResponse> respond_call(const Route& route, Call& call, const PathParameters& path);
  Answer<HttpResponse> respond_once(const Route& route, Call& call);
  Answer<> read_arguments(Call& call, const PathParameters& path);
  Answer<HttpResponse> respond_shared(const Route& route, Call& call, const PathParameters& path);
  void note_change();
  Answer<> admit(const Route& route, Call& call);
  Answer<HttpResponse> metrics(const HttpRequest& request);
  Answer<> audit(const Call& call, const Answer<HttpResponse>& answer);
  bool worth_auditing(const Call& call, int status);

  Backend& backend_;
  const StaticFiles& files_;
  AnswerCache answers_;
  RepeatedRequests repeats_;
  std::atomic<uint64_t> changes_ = 0;  // requests that may have changed something
  LoginLimit refusals_;                // written into the audit log
};

// Whether `path` is what `pattern` ("/bricks/{brick}") describes, and with which parameters.
bool match(std::string_view pattern, std::string_view path, PathParameters& parameters);

}  // namespace pnfsrdma::console
