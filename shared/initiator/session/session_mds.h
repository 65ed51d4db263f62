// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <vector>

#include "shared/initiator/mds.h"
#include "shared/initiator/session/session.h"

namespace pnfsrdma::initiator {

// The data path's metadata calls as COMPOUNDs of a session: one PUTFH and one operation each, one round trip.
// LAYOUTRETURN and LAYOUTCOMMIT may use the session's reserved slot, so that a recall ends while all others
// wait for it. Thread-safe. The session must outlive it.
class SessionMds final : public Mds {
 public:
  explicit SessionMds(Session& session) : session_(session) {}

  // LAYOUTCOMMIT and WRITE bring the file's attributes of after them along (GETATTR in the same COMPOUND).
  // `changed`: they have moved the change attribute (a LAYOUTCOMMIT that only flushes does not). Called before
  // the data path has noted the success, that is before FileIo::local_version() grows by one for it; from any
  // thread, must not block.
  using AttributesKnown = std::function<void(const nfs4::FileHandle& file, const nfs4::Attributes& attributes,
                                             SteadyTime asked_at, bool changed)>;
  // Once, before the first call. What `known` uses lives as long as the session's threads.
  void bring_attributes(const nfs4::Bitmap& wanted, AttributesKnown known) {
    attributes_wanted_ = wanted;
    attributes_known_ = std::move(known);
  }

  MetadataResult<nfs4::DeviceAddress> get_device_info(const nfs4::DeviceId& device) override;
  MetadataResult<LayoutGetAnswer> layout_get(const FileReference& file,
                                             const nfs4::LayoutGetArguments& arguments) override;
  MetadataResult<nfs4::LayoutCommitResult> layout_commit(
      const FileReference& file, const nfs4::LayoutCommitArguments& arguments) override;
  void start_layout_commit(const FileReference& file, const nfs4::LayoutCommitArguments& arguments,
                           std::function<void(MetadataResult<nfs4::LayoutCommitResult>)> done) override;
  MetadataResult<nfs4::LayoutReturnResult> layout_return(
      const FileReference& file, const nfs4::LayoutReturnArguments& arguments,
      const nfs4::LayoutStatisticsArguments* activity) override;
  MetadataResult<nfs4::Status> test_stateid(const nfs4::Stateid& stateid) override;
  void start_layout_error(const FileReference& file, const nfs4::LayoutErrorArguments& arguments) override;
  // Several to a COMPOUND.
  void start_layout_statistics(std::vector<LayoutReport> reports) override;
  MetadataResult<nfs4::ReadResult> read(const FileReference& file, const nfs4::Stateid& stateid,
                                        uint64_t offset, MutableByteSpan sink) override;
  MetadataResult<nfs4::WriteResult> write(const FileReference& file, const nfs4::Stateid& stateid,
                                          uint64_t offset, ByteSpan source, nfs4::StableHow stable) override;
  MetadataResult<WriteVerifier> commit(const FileReference& file,
                                       const nfs4::CommitArguments& arguments) override;
  size_t io_size_max() const override { return session_.io_size_max(); }
  SteadyTime lease_end() const override { return session_.lease_end(); }
  void renew_opens() override { session_.renew_opens(); }

 private:
  Session::Operations and_attributes(Session::Operations operations) const;
  // `at`: the index of the GETATTR.
  void take_attributes(const nfs4::FileHandle& file, const Result<CompoundReply>& reply, size_t at,
                       SteadyTime asked_at, bool changed) const;

  // Of the COMPOUND the answer ends with the first that was refused; those behind it go again, if one was taken.
  void take_told(std::vector<LayoutReport> told, const Result<CompoundReply>& reply);
  bool takes_statistics() const { return session_.minor_version() >= 2 && !statistics_refused_; }
  // Of LAYOUTSTATS: is it this one that was refused, or would each be?
  void note_refusal(nfs4::Status status);

  Session& session_;
  std::atomic<bool> statistics_refused_ = false;
  nfs4::Bitmap attributes_wanted_;
  AttributesKnown attributes_known_;
};

}  // namespace pnfsrdma::initiator
