import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Closing: once, whatever it reports.
@Suite(.blocking) struct CloseTests {
  private let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory() }

  /// What closing reports; a macro cannot consume the descriptor itself.
  private func failure(closing file: consuming Descriptor) -> Errno? {
    do throws(Errno) {
      try file.close()
      return nil
    } catch {
      return error
    }
  }

  @Test(arguments: [Errno.interrupted, .inputOutput, .noSpace])
  func isNeverRetried(_ error: Errno) throws {
    let calls = try FaultPoints.with([FaultRule(.close, persistent: true, .fail(error))]) {
      let file = try folder.descriptor.open("file", [.writeOnly, .create], mode: 0o600)
      let reported = failure(closing: file)
      #expect(reported == error)
    }
    #expect(calls.count { $0.hasPrefix("close ") } == 1)
  }

  @Test func happensOnceWhenNobodyAsks() throws {
    let calls = try FaultPoints.with([FaultRule(.close, persistent: true, .fail(.interrupted))]) {
      _ = try folder.descriptor.open("file", [.writeOnly, .create], mode: 0o600)
    }
    #expect(calls.count { $0.hasPrefix("close ") } == 1)
  }

  /// A close that reports an error has closed all the same, and its locks are free.
  @Test func failedCloseFreesTheLock() throws {
    try folder.write("", to: "lock")
    try FaultPoints.with([FaultRule(.close, .fail(.inputOutput))]) {
      let first = try folder.descriptor.open("lock", [.readWrite])
      try first.lock(.exclusive)
      let reported = failure(closing: first)
      #expect(reported == .inputOutput)
    }
    let second = try folder.descriptor.open("lock", [.readWrite])
    let isFree = try second.tryLock(.exclusive)
    #expect(isFree)
  }
}
