// SPDX-License-Identifier: Apache-2.0
#include "server/console/audit_words.h"

#include <fmt/format.h>

namespace pnfsrdma::console {

namespace {

// The words between "tried to " and the end, and those of what was done: "revoke …", "revoked …".
struct Words {
  std::string did;
  std::string would;
};

const Json& part(const Json& entry, const char* name) {
  static const Json none;
  const auto found = entry.find(name);
  return found == entry.end() || !found->is_object() ? none : *found;
}

std::string text(const Json& from, const char* name, const std::string& otherwise = {}) {
  const auto found = from.is_object() ? from.find(name) : from.end();
  if (!from.is_object() || found == from.end()) return otherwise;
  return found->is_string() ? found->get<std::string>() : to_text(*found);
}

// "/users/eve" -> "eve"
std::string last_of(const std::string& path, int from_end = 0) {
  std::string_view rest = path;
  for (; from_end > 0 && rest.rfind('/') != std::string_view::npos; --from_end)
    rest = rest.substr(0, rest.rfind('/'));
  return std::string(rest.substr(rest.rfind('/') + 1));
}

// "role viewer -> operator, read_only false -> true": the members that both have and that differ.
std::string differences(const Json& before, const Json& after) {
  std::string all;
  if (!before.is_object() || !after.is_object()) return all;
  for (const auto& item : after.items()) {
    if (!before.contains(item.key()) || before[item.key()] == item.value()) continue;
    all += fmt::format("{} {} {} -> {}", all.empty() ? ":" : ",", item.key(),
                       text(before, item.key().c_str()), text(after, item.key().c_str()));
  }
  return all;
}

// "/data from host1"
std::string file_and_client(const Json& layout, const std::string& id) {
  const std::string path = text(layout, "path");
  const std::string file = path.empty() ? "a file (layout " + id + ")" : path;
  return fmt::format("{} from {}", file, text(layout, "client_name", "a client"));
}

Words layouts_words(const Json& before) {
  const auto first = before.is_object() ? before.find("first") : before.end();
  const bool named = before.is_object() && first != before.end() && first->is_array() && !first->empty();
  const std::string count = text(before, "layouts", "the");
  const std::string what =
      named ? fmt::format("{} layouts, among them that of {}", count, file_and_client(first->front(), ""))
            : count + " layouts";
  return {"revoked " + what, "revoke " + what};
}

Words user_words(const Json& before, const Json& after, const std::string& name) {
  if (before.is_null() && !after.is_null()) {
    const std::string what = fmt::format("the user {}, role {}", name, text(after, "role", "unknown"));
    return {"created " + what, "create " + what};
  }
  std::string changes = differences(before, after);
  if (changes.empty()) changes = ": new password";
  return {"changed the user " + name + changes, "change the user " + name};
}

Words setting_words(const Json& after) {
  std::string all;
  if (!after.is_object()) return {"changed settings", "change settings"};
  for (const auto& item : after.items()) {
    const std::string now =
        item.value().is_null() ? "as in the configuration file" : text(after, item.key().c_str());
    all += fmt::format("{}{} to {}", all.empty() ? "" : ", ", item.key(), now);
  }
  return {"set " + all, "set " + all};
}

Words export_words(const std::string& action, const Json& before, const Json& after) {
  if (action == "postExport") {
    // Of a refused call the body is not read.
    const std::string what = after.is_null() ? "an export" : "the export " + text(after, "path");
    return {"created " + what, "create " + what};
  }
  const std::string path = text(before, "path", "unknown");
  if (action == "deleteExport") return {"removed the export " + path, "remove the export " + path};
  return {"changed the export " + path + differences(before, after), "change the export " + path};
}

Words brick_words(const std::string& action, const std::string& subject, const Json& before,
                  const Json& after) {
  if (action == "postBrick") {
    const std::string what = after.is_null() ? "a brick" : "the brick at " + text(after, "address");
    return {"added " + what, "add " + what};
  }
  const bool job = action == "postBrickFormat" || action == "postBrickCheck";
  const std::string address = text(before, "address");
  const std::string name = text(before, "name");
  const std::string brick = "the brick " + (name.empty() ? last_of(subject, job ? 1 : 0) : name) +
                            (address.empty() ? "" : " at " + address);
  if (action == "postBrickFormat") return {"began to format " + brick, "format " + brick};
  if (action == "postBrickCheck") return {"began to check " + brick, "check " + brick};
  if (action == "deleteBrick") return {"removed " + brick, "remove " + brick};
  if (text(after, "draining") == "true") return {"drained " + brick, "drain " + brick};
  if (text(after, "draining") == "false") return {"ended draining " + brick, "end draining " + brick};
  return {"changed " + brick + differences(before, after), "change " + brick};
}

Words snapshot_words(const std::string& action, const std::string& subject, const Json& before,
                     const Json& after) {
  if (action == "postSnapshot") {
    const std::string what = "the snapshot " + text(after, "name", "named by its time");
    return {"took " + what, "take " + what};
  }
  if (action == "putSnapshotSchedule") {
    return {"changed the schedule of snapshots" + differences(before, after),
            "change the schedule of snapshots"};
  }
  const std::string what = "the snapshot " + text(before, "name", last_of(subject));
  if (action == "patchSnapshot" && text(after, "pinned") == "true") return {"pinned " + what, "pin " + what};
  if (action == "patchSnapshot") return {"unpinned " + what, "unpin " + what};
  return {"deleted " + what, "delete " + what};
}

// "the user alice", "the quota tree /projects"; of a refused call what the path names.
std::string whose_quota(const std::string& subject, const Json& before) {
  const std::string kind = last_of(subject, 1);
  const std::string who = text(before, "name", last_of(subject));
  return (kind == "tree" ? "the quota tree " : "the " + kind + " ") +
         (who == "null" ? last_of(subject) : who);
}

Words quota_words(const std::string& action, const std::string& subject, const Json& before,
                  const Json& after) {
  if (action == "postQuotaTree") {
    const std::string what = "the quota tree " + text(after, "path");
    return {"made " + what, "make " + what};
  }
  if (action == "postQuotaRecount") return {"had all quotas counted again", "have all quotas counted again"};
  if (action == "patchQuotaSettings") {
    const bool begins = text(after, "on") == "true" && text(before, "state") == "off";
    if (begins) return {"switched quotas on" + differences(before, after), "switch quotas on"};
    return {"changed the settings of quotas" + differences(before, after), "change the settings of quotas"};
  }
  const std::string whose = whose_quota(subject, before);
  if (action == "patchQuota")
    return {"set limits of " + whose + differences(before, after), "set limits of " + whose};
  const std::string what = (last_of(subject, 1) == "tree" ? "" : "the limits of ") + whose;
  return {"removed " + what, "remove " + what};
}

// Of the URL what stands before the path: the rest is often a secret, and this is logged.
std::string receiver_of(const Json& webhook) {
  const std::string url = text(webhook, "url", "nowhere");
  const size_t host = url.find("//");
  return host == std::string::npos ? url : url.substr(0, url.find_first_of("/?", host + 2));
}

Words alert_words(const std::string& action, const Json& before, const Json& after, const std::string& id) {
  const std::string alert = fmt::format("the alert {} ({})", id, text(before, "summary", "unknown"));
  if (action == "deleteAcknowledgement")
    return {"took back the acknowledgement of " + alert, "take back the acknowledgement of " + alert};
  const std::string comment = text(after, "comment");
  return {"acknowledged " + alert + (comment.empty() ? "" : ": " + comment), "acknowledge " + alert};
}

Words webhook_words(const std::string& action, const Json& before, const Json& after) {
  if (action == "postWebhookTest")
    return {"sent a test alert to " + receiver_of(before), "send a test alert to " + receiver_of(before)};
  if (action == "deleteWebhook")
    return {"removed the webhook to " + receiver_of(before), "remove the webhook to " + receiver_of(before)};
  return {"set the webhook to " + receiver_of(after), "set the webhook to " + receiver_of(after)};
}

Words words_of(const std::string& action, const std::string& subject, const Json& before, const Json& after) {
  const std::string last = last_of(subject);
  if (action == "postSetup") return {"set the first password", "set the first password"};
  if (action == "postSession") return {"logged in", "log in as " + text(after, "user", "nobody")};
  if (action == "deleteSession") return {"logged out", "log out"};
  if (action == "putPassword") return {"changed the own password", "change the own password"};
  if (action == "putUser") return user_words(before, after, last);
  if (action == "deleteUser") return {"removed the user " + last, "remove the user " + last};
  if (action == "postToken") {
    const std::string what =
        after.is_null() ? "a token"
                        : fmt::format("the token {}, role {}", text(after, "name"), text(after, "role"));
    return {"created " + what, "create " + what};
  }
  if (action == "deleteToken") {
    const std::string what =
        fmt::format("the token {} of {}", text(before, "name", last), text(before, "user", "?"));
    return {"removed " + what, "remove " + what};
  }
  if (action.find("Brick") != std::string::npos) return brick_words(action, subject, before, after);
  if (action.find("Export") != std::string::npos) return export_words(action, before, after);
  if (action.find("Snapshot") != std::string::npos) return snapshot_words(action, subject, before, after);
  if (action.find("Quota") != std::string::npos) return quota_words(action, subject, before, after);
  if (action == "deleteLayouts") return layouts_words(before);
  if (action == "deleteLayout") {
    const std::string what = "the layout of " + file_and_client(before, last);
    return {"revoked " + what, "revoke " + what};
  }
  if (action == "deleteClient") {
    const std::string what = "the client " + text(before, "name", last);
    return {"expelled " + what, "expel " + what};
  }
  if (action == "patchConfiguration") return setting_words(after);
  if (action.find("Acknowledgement") != std::string::npos)
    return alert_words(action, before, after, last_of(subject, 1));
  if (action.find("Webhook") != std::string::npos) return webhook_words(action, before, after);
  if (action == "deleteJob") return {"cancelled job " + last, "cancel job " + last};
  return {action + " " + subject, action + " " + subject};
}

}  // namespace

std::string audit_summary(const Json& entry) {
  const Words words =
      words_of(text(entry, "action"), text(entry, "subject"), part(entry, "before"), part(entry, "after"));
  const std::string status = text(entry, "status", "0");
  if (status == "503") return "tried to " + words.would + "; the outcome is unknown";
  if (status == "401") return "failed to " + words.would;
  if (status == "403") return "was not permitted to " + words.would;
  return status >= "400" ? "could not " + words.would : words.did;
}

std::string plain_text(std::string_view text) {
  std::string plain;
  for (const char c : text) plain += static_cast<unsigned char>(c) < 0x20 || c == '"' || c == 0x7f ? '?' : c;
  return plain;
}

}  // namespace pnfsrdma::console
