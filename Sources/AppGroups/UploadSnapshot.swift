internal import Foundation
internal import Wormhole
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// A copy of a file, in a directory of its own, to be read while other programs continue to use the
/// file.
struct UploadSnapshot {
  let url: URL
  private let folder: URL

  /// Copies a file; if the file system supports it, the copy shares the file's blocks.
  ///
  /// Anything but a regular file is refused: devices make an archive of a folder, and no archiver
  /// is available here.
  init(of path: String) throws {
    do {
      let source = try Descriptor.open(following: path, .readOnlyNonBlocking)
      let status = try source.status()
      guard status.kind == .regular else { throw Errno.notSupported }
      folder = try Self.makeFolder()
      url = folder.appendingPathComponent(URL(fileURLWithPath: path).lastPathComponent)
      do {
        try copy(source, status.size)
      } catch {
        remove()
        throw error
      }
    } catch let error as Errno {
      guard error != .notSupported else {
        throw NSError(
          domain: NSCocoaErrorDomain, code: CocoaError.Code.featureUnsupported.rawValue,
          userInfo: [
            NSLocalizedDescriptionKey:
              "cannot copy '\(path)' for uploading: not a regular file; pack a directory into an "
              + "archive file",
            NSFilePathErrorKey: path,
          ])
      }
      throw WormholeError(error, "copy for uploading", path)
    }
  }

  private func copy(_ source: borrowing Descriptor, _ size: Int) throws(Errno) {
    let new = try Descriptor.open(path: url.path, .readWriteNew, mode: 0o600)
    do throws(CopyFailure) {
      _ = try FileCopy.copy(source, to: new, size: size) { _ in true }
    } catch {
      if case .system(let error) = error { throw error }
      throw .inputOutput
    }
  }

  /// The error names the directory, because the file itself can be copied.
  private static func makeFolder() throws(WormholeError) -> URL {
    let name = "wormhole-upload-" + UUID().uuidString
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(name)
    try naming(
      "make temporary directory", folder.path,
      Descriptor.makeDirectory(path: folder.path, mode: 0o700))
    return folder
  }

  func remove() { try? FileManager.default.removeItem(at: folder) }
}
