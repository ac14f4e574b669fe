public import Foundation
internal import Syscalls
internal import Wormhole

/// One file, and what is to be done with it, for
/// ``NSFileCoordinator/coordinate(with:queue:byAccessor:)``.
public final class NSFileAccessIntent: NSObject, Sendable {
  /// What an access is asked for, and whether the accessor gets a copy.
  struct Wanted: Sendable {
    var intent: Wormhole.Coordinator.Intent
    var isReading = false
    var isForUploading = false
  }

  let wanted: Wanted
  private let place: Monitor<URL>

  private init(_ wanted: Wanted, _ url: URL) {
    self.wanted = wanted
    place = Monitor(url)
  }

  /// Where the file is to be used, once the accessor runs; before that, what it was made with.
  public var url: URL { place.withLock { $0 } }

  /// It is read.
  public static func readingIntent(
    with url: URL, options: NSFileCoordinator.ReadingOptions = []
  ) -> NSFileAccessIntent {
    NSFileAccessIntent(intent(url, options), url)
  }

  /// It is written.
  public static func writingIntent(
    with url: URL, options: NSFileCoordinator.WritingOptions = []
  ) -> NSFileAccessIntent {
    NSFileAccessIntent(intent(url, options), url)
  }

  func use(_ url: URL) { place.withLock { $0 = url } }

  static func intent(
    _ url: URL, _ options: NSFileCoordinator.ReadingOptions
  ) -> Wanted {
    var intent = Wormhole.Coordinator.Intent.reading(url.path)
    if options.contains(.withoutChanges) { intent.manner = .unsaved }
    return Wanted(
      intent: intent, isReading: true, isForUploading: options.contains(.forUploading))
  }

  static func intent(
    _ url: URL, _ options: NSFileCoordinator.WritingOptions
  ) -> Wanted {
    var intent: Wormhole.Coordinator.Intent =
      options.contains(.forReplacing) ? .replacing(url.path) : .writing(url.path)
    intent.mayMakeNothing = true
    if options.contains(.contentIndependentMetadataOnly) {
      intent.manner = .unnoticed
    } else if options.contains(.forDeleting) {
      intent.manner = .deleting
    }
    return Wanted(intent: intent)
  }
}

extension NSError {
  /// As devices tell of it; what was found here lies below.
  ///
  /// - Parameter wanted: what was to be read or written; if it is known which of them the error is
  ///   of, that one counts.
  static func cocoa(_ error: any Error, of wanted: [NSFileAccessIntent.Wanted]) -> NSError {
    guard let error = error as? WormholeError else { return error as NSError }
    let meant = wanted.filter { $0.intent.path == error.subject }
    let isReading = (meant.isEmpty ? wanted : meant).allSatisfy(\.isReading)
    let code =
      switch error.code {
      case .cancelled: CocoaError.Code.userCancelled
      case .notFound: CocoaError.Code.fileNoSuchFile
      case .permissionDenied, .refused:
        isReading ? CocoaError.Code.fileReadNoPermission : .fileWriteNoPermission
      case .readOnly: CocoaError.Code.fileWriteVolumeReadOnly
      case .full: CocoaError.Code.fileWriteOutOfSpace
      case .timedOut, .stopped, .deadlock, .nested: CocoaError.Code.fileLocking
      default: isReading ? CocoaError.Code.fileReadUnknown : .fileWriteUnknown
      }
    return NSError(
      domain: NSCocoaErrorDomain, code: code.rawValue,
      userInfo: [
        NSLocalizedDescriptionKey: error.description, NSFilePathErrorKey: error.subject,
        NSUnderlyingErrorKey: error,
      ])
  }
}
