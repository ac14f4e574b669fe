import TestSupport
import WormholeSyscalls

/// The modules and their folders, in the order in which `.github/CONTRIBUTING.md` lists them: the
/// highest first.
struct Layers {
  private(set) var folders: [String: [String]] = [:]

  init() throws {
    let path = "\(Programs.source)/.github/CONTRIBUTING.md"
    let text = String(
      decoding: try Descriptor.open(path: path, [.readOnly]).contents(), as: UTF8.self)
    var isInside = false
    var module = ""
    for line in text.split(separator: "\n") {
      if line == "<!-- layers -->" {
        isInside = true
      } else if isInside, line == "```" {
        return
      } else if isInside, !line.hasPrefix("```"),
        let name = line.split(separator: " ").first.map(String.init)
      {
        if line.hasPrefix(" ") {
          folders[module, default: []].append(name)
        } else {
          module = name
          folders[module] = []
        }
      }
    }
  }

  /// What files of a module use of the layers above their own.
  func upwardReferences(in module: String, _ files: [SourceFile], below: [SourceFile])
    -> [Finding]
  {
    let heights = Dictionary(
      uniqueKeysWithValues: (folders[module] ?? []).reversed().enumerated().map { ($1, $0) })
    let layered = files.map { LayeredFile($0, height: heights[$0.folder] ?? -1) }
    var types: [Substring: Int] = [:]
    var members: [Substring: Int] = [:]
    for file in layered {
      for type in file.types { types[type] = min(types[type] ?? .max, file.height) }
    }
    // A member of an extension belongs to the layer of the extension.
    for file in layered {
      for (name, extended) in file.extensionMembers where (types[extended] ?? -1) < file.height {
        members[name] = min(members[name] ?? .max, file.height)
      }
    }
    for file in layered {
      for name in file.declared { members[name] = members[name].map { min($0, file.height) } }
    }
    let external = Set(below.flatMap { LayeredFile($0, height: 0).declared })
    var found: [Finding] = []
    for file in layered {
      if file.height < 0 {
        found.append(
          Finding(path: file.path, line: 1, message: "its folder is not among the layers"))
      }
      found += file.uses(above: types, members, external)
    }
    return found
  }
}

extension SourceFile {
  /// The folder inside the module; empty for a file that is in none.
  var folder: String {
    let parts = path.split(separator: "/")
    return parts.count > 3 ? String(parts[2]) : ""
  }
}

/// The names that a file declares and uses.
private struct LayeredFile {
  let path: String
  let height: Int
  /// The types that other files can name.
  private(set) var types: Set<Substring> = []
  /// Everything that has a name here, private or not.
  private(set) var declared: Set<Substring> = []
  /// The functions and properties in extensions of types.
  private(set) var extensionMembers: [(name: Substring, extended: Substring)] = []
  /// Parameters without a label, which a function may call by their names.
  private(set) var parameters: Set<Substring> = []
  private let words: [[Word]]

  private static let kinds: Set<Substring> = [
    "class", "struct", "enum", "actor", "protocol", "typealias", "associatedtype",
  ]
  private static let named: Set<Substring> = ["func", "var", "let", "case"]
  /// The class is the namespace of the module's types as well.
  private static let namespace: Substring = "Wormhole"

  init(_ file: SourceFile, height: Int) {
    path = file.path
    words = file.words
    self.height = height
    var scope: Substring?
    for (index, line) in file.words.enumerated() {
      let texts = line.map(\.text)
      let indentation = file.code[index].prefix { $0 == " " }.count
      if indentation == 0, !texts.isEmpty {
        scope = texts.first == "extension" ? line.last { $0.owner == nil }?.text : nil
        if texts.first == "extension" { scope = Self.extended(line) }
      }
      for (word, next) in zip(texts, texts.dropFirst()) {
        if word == "_" { parameters.insert(next) }
        if Self.kinds.contains(word) {
          declared.insert(next)
          let isVisible = indentation == 0 || indentation == 2 && scope == Self.namespace
          if isVisible, !texts.contains("private") { types.insert(next) }
        } else if Self.named.contains(word) {
          declared.insert(next)
          let isMember = word == "func" || word == "var"
          if isMember, let scope, indentation == 2, !texts.contains("private") {
            extensionMembers.append((next, scope))
          }
        }
      }
    }
  }

  /// The type that an extension extends: the last part of `extension A.B: C {`.
  private static func extended(_ line: [Word]) -> Substring? {
    var extended: Substring?
    for word in line.dropFirst() {
      if extended != nil, word.owner == nil { break }
      extended = word.text
    }
    return extended
  }

  func uses(
    above types: [Substring: Int], _ members: [Substring: Int], _ external: Set<Substring>
  ) -> [Finding] {
    var found: [Finding] = []
    for (index, line) in words.enumerated() {
      for (place, word) in line.enumerated() {
        let name = word.text
        guard !declared.contains(name), word.owner != nil || !parameters.contains(name) else {
          continue
        }
        if let layer = types[name], layer > height, word.owner == nil || word.owner == "Wormhole" {
          let isNamespace = line.dropFirst(place + 1).first?.owner == name
          if name == Self.namespace, isNamespace || word.previous == "extension" { continue }
          found.append(finding(index, "names '\(name)', which is in a layer above"))
        } else if word.isCalled || word.owner != nil, let layer = members[name], layer > height,
          !external.contains(name)
        {
          found.append(finding(index, "uses '\(name)', which is in a layer above"))
        }
      }
    }
    return found
  }

  private func finding(_ index: Int, _ message: String) -> Finding {
    Finding(path: path, line: index + 1, message: message)
  }
}
