public import Foundation

/// A version of a file.
///
/// No file has versions here besides its current content: no list contains a version, no file has
/// a conflict, and there is nothing to resolve or to remove.
public final class NSFileVersion: NSObject, Sendable {
  /// Options for a version that is added; nothing is added here.
  public struct AddingOptions: OptionSet, Sendable {
    /// The bits of the options.
    public let rawValue: UInt
    /// Creates options from their bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// The content is moved.
    public static let byMoving = AddingOptions(rawValue: 1 << 0)
  }

  /// Options for a version that replaces its file.
  public struct ReplacingOptions: OptionSet, Sendable {
    /// The bits of the options.
    public let rawValue: UInt
    /// Creates options from their bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// The content is moved.
    public static let byMoving = ReplacingOptions(rawValue: 1 << 0)
  }

  /// The location of the file.
  public let url: URL
  /// The time of the file's last change; nil if the file is missing.
  public let modificationDate: Date?

  private init(_ url: URL, _ modificationDate: Date?) {
    (self.url, self.modificationDate) = (url, modificationDate)
    super.init()
  }

  /// Returns the version that is the file's present content; nil if there is no file.
  public class func currentVersionOfItem(at url: URL) -> NSFileVersion? {
    guard let values = try? FileManager.default.attributesOfItem(atPath: url.path) else {
      return nil
    }
    return NSFileVersion(url, values[.modificationDate] as? Date)
  }

  /// Returns no version: no other version exists.
  public class func otherVersionsOfItem(at url: URL) -> [NSFileVersion]? { [] }

  /// Returns no version: no file has a conflict.
  public class func unresolvedConflictVersionsOfItem(at url: URL) -> [NSFileVersion]? { [] }

  /// Calls the closure with no version.
  public class func getNonlocalVersionsOfItem(
    at url: URL, completionHandler: @escaping @Sendable ([NSFileVersion]?, (any Error)?) -> Void
  ) { completionHandler([], nil) }

  /// Returns nil: no version has an identifier.
  public class func version(
    itemAt url: URL, forPersistentIdentifier persistentIdentifier: Any
  ) -> NSFileVersion? { nil }

  /// Does nothing.
  public class func removeOtherVersionsOfItem(at url: URL) throws {}

  /// The name of the file.
  public var localizedName: String? { url.lastPathComponent }
  /// The name of the machine that has changed the file: always nil.
  public var localizedNameOfSavingComputer: String? { nil }
  /// Whether the version conflicts with another one: never.
  public var isConflict: Bool { false }
  /// Whether the conflict is resolved: always, and setting it does nothing.
  public var isResolved: Bool {
    get { true }
    set { _ = newValue }
  }
  /// Whether the system may remove the version: never.
  public var isDiscardable: Bool { false }
  /// Whether the content is on this machine: always.
  public var hasLocalContents: Bool { true }

  /// Returns the location that is replaced, which has the content already.
  public func replaceItem(at url: URL, options: ReplacingOptions = []) throws -> URL { url }

  /// Fails: the current version cannot be removed.
  public func remove() throws { throw CocoaError(.featureUnsupported) }
}
