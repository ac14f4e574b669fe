public import Foundation
internal import DropIns
internal import SharedContainer

extension FileManager {
  /// The directory that the programs of a group share, one per user; made if need be.
  ///
  /// Files in it are the programs' own affair; beside them lies `.wormhole`, through which they are
  /// kept in step. It is nil if there can be no such directory, and ``DropInLog`` says why.
  public func containerURL(
    forSecurityApplicationGroupIdentifier groupIdentifier: String
  ) -> URL? {
    do throws(WormholeError) {
      let location = try ContainerLocation(group: groupIdentifier)
      try location.prepare(.owner)
      return URL(fileURLWithPath: location.directory, isDirectory: true)
    } catch {
      DropInLog.tell(.error, error)
      return nil
    }
  }

  /// Makes the directory that programs put their documents into, where the account has none.
  ///
  /// On devices it is always there, and code that was written for them moves files into it unasked.
  package func makeDocumentDirectory() {
    guard let url = urls(for: .documentDirectory, in: .userDomainMask).first else { return }
    do {
      try createDirectory(at: url, withIntermediateDirectories: true)
    } catch {
      DropInLog.tell(.warning, "there is no directory for documents: \(error)")
    }
  }
}
