import SharedContainer
import Syscalls
import TestSupport
import Wormhole

/// A container of one test's own.
struct Meeting {
  let folder: TemporaryDirectory
  let hole: Wormhole

  init(_ adjust: (inout Wormhole.Options) -> Void = { _ in }) throws {
    folder = try TemporaryDirectory()
    var options = Wormhole.Options()
    options.lease = .milliseconds(50)
    adjust(&options)
    hole = try Wormhole(directory: folder.path + "/c", options: options)
  }

  var path: String { hole.directory }

  /// The same container, opened once more.
  func another(_ adjust: (inout Wormhole.Options) -> Void = { _ in }) throws -> Wormhole {
    var options = Wormhole.Options()
    options.lease = .milliseconds(50)
    adjust(&options)
    return try Wormhole(directory: path, options: options)
  }

  /// Writes bytes over a file of the container, as no program of ours would.
  func overwrite(_ name: String, _ bytes: [UInt8]) throws {
    let file = try Descriptor.open(path: path + "/" + name, [.writeOnly, .truncate])
    let failure: Errno? = bytes.withUnsafeBytes { bytes in
      do throws(Errno) {
        try file.writeFully(bytes)
        return nil
      } catch {
        return error
      }
    }
    if let failure { throw failure }
  }

  func bytes(of name: String) throws -> [UInt8] {
    try Descriptor.open(path: path + "/" + name, [.readOnly]).contents()
  }
}

/// A value of several types, as programs have them.
struct Order: Codable, Equatable, Sendable {
  struct Seat: Codable, Equatable, Sendable {
    var row: Int
    var number: Int
  }

  var film: String
  var seats: [Seat]
  var note: String?
}

/// The error that a body throws; fails the test if there is none.
func failure(_ body: () throws -> Void) throws -> WormholeError {
  do {
    try body()
  } catch let error as WormholeError {
    return error
  }
  throw Missing()
}

/// An error was expected and did not come.
struct Missing: Error {}
