import WormholeContainerStorage
import WormholeSyscalls

/// The package of this command, as a manifest names it: by a URL, or by a directory.
enum PackageReference {
  case url(String)
  /// An absolute path without symbolic links.
  case directory(String)

  /// The published address, as in README; nil until there is one.
  static let published: String? = nil

  /// - Parameter text: the argument of `--package`.
  init(_ text: String?) throws {
    guard let text = text ?? Self.published else {
      throw WormholeError(
        .notFound, "write package", "wormhole", because: "the package has no public address yet",
        hint: "pass '--package' with the URL or the directory of the package")
    }
    guard !Self.isURL(text) else {
      self = .url(text)
      return
    }
    do throws(Errno) {
      let directory = try Descriptor.open(following: text, .readOnlyDirectory)
      _ = try directory.status(of: "Package.swift")
      self = .directory(try directory.straightPath())
    } catch {
      let failure = WormholeError(error, "use package", text)
      throw WormholeError(
        failure.code, "use package", text,
        because: error == .noSuchFile
          ? "there is no file 'Package.swift' in a directory of this path" : failure.reason,
        hint: "pass the directory of the package, or a URL such as 'https:…' or 'git@…'",
        errno: error)
    }
  }

  /// Git's short form of a host and a path counts, too.
  private static func isURL(_ text: String) -> Bool {
    let start = text.parts(between: "/", most: 1, keepingEmpty: true)[0]
    return start.utf8.contains(UInt8(ascii: ":"))
  }

  /// The name by which the package manager knows the package.
  var identity: String {
    switch self {
    case .directory: "wormhole"
    case .url(let url):
      url.parts(between: "/").last.map { last in
        let name = last.parts(between: ":").last ?? last
        return (name.ends(with: ".git") ? String(name.dropLast(4)) : name).lowercased()
      } ?? "wormhole"
    }
  }

  /// The dependency in the manifest of a package in a directory.
  func dependency(of directory: String) -> String {
    switch self {
    case .url(let url): ".package(url: \(url.asLiteral), from: \"0.1.0\")"
    case .directory(let path):
      ".package(name: \"wormhole\", path: \(relativePath(from: directory, to: path).asLiteral))"
    }
  }
}

extension String {
  /// The text as a literal of Swift, whatever characters it contains.
  var asLiteral: String {
    var literal = "\""
    for scalar in unicodeScalars {
      switch scalar {
      case "\"", "\\": literal += "\\\(scalar)"
      case _ where scalar.value < 0x20 || scalar.value == 0x7F:
        literal += "\\u{\(String(scalar.value, radix: 16))}"
      default: literal.unicodeScalars.append(scalar)
      }
    }
    return literal + "\""
  }
}
