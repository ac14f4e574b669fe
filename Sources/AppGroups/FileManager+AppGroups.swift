public import Foundation
internal import WormholeContainerStorage
internal import WormholeDropIns

extension FileManager {
  /// The directory that the programs of a group share, one per user; made if necessary.
  ///
  /// The programs decide on the files in the directory; beside their files is `.wormhole`, the
  /// container through which the programs are kept in step. The result is nil if the directory
  /// cannot be made or used, and ``DropInLog`` reports the cause.
  public func containerURL(
    forSecurityApplicationGroupIdentifier groupIdentifier: String
  ) -> URL? {
    DropInLog.attempt {
      let location = try ContainerLocation(group: groupIdentifier)
      try location.prepare(.owner)
      return URL(fileURLWithPath: location.directory, isDirectory: true)
    }
  }

  /// Makes the directory for documents, if the account has none.
  ///
  /// On devices the directory always exists, and code that was written for devices moves files into
  /// it without a check.
  package func makeDocumentDirectory() {
    guard let url = urls(for: .documentDirectory, in: .userDomainMask).first else { return }
    do {
      try createDirectory(at: url, withIntermediateDirectories: true)
    } catch {
      DropInLog.tell(
        .warning, "cannot create directory '\(url.path)' for the user's documents: \(error)")
    }
  }
}
