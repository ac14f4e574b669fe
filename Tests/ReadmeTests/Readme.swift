import TestSupport
import WormholeSyscalls

/// README.md, or another page of the documentation, as far as tests can compare it with the code.
struct Readme {
  let text: String

  /// - Parameter path: the page, from the root of the package.
  init(_ path: String = "README.md") throws {
    let path = Programs.source + "/" + path
    text = String(
      decoding: try Descriptor.open(path: path, [.readOnly]).contents(), as: UTF8.self)
  }

  static let catalogue = "Sources/Wormhole/Wormhole.docc"

  /// README.md, the articles, and the pages for contributors, if there are any.
  static func pages() throws -> [String] {
    let folders = [catalogue, "Sources/WormholeTesting/WormholeTesting.docc", ".github"]
    let found = try folders.flatMap { folder -> [String] in
      let path = Programs.source + "/" + folder
      guard folder != ".github" || (try? Descriptor.open(path: path, [.path])) != nil else {
        return []
      }
      return try Descriptor.open(path: path, [.readOnly, .directory]).names()
        .filter { $0.hasSuffix(".md") }.map { "\(folder)/\($0)" }
    }
    return ["README.md"] + found.sorted()
  }

  /// A fenced block, with the mark in the comment on the line before it.
  struct Block {
    let mark: String
    let language: String
    let lines: [String]
  }

  /// The marked blocks, as in `<!-- transcript -->`.
  var blocks: [Block] {
    var blocks: [Block] = []
    var mark: String?
    var open: (mark: String, language: String, lines: [String])?
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
      if let block = open {
        if line == "```" {
          blocks.append(Block(mark: block.mark, language: block.language, lines: block.lines))
          open = nil
        } else {
          open?.lines.append(line)
        }
      } else if line.hasPrefix("```") {
        open = (mark ?? "", String(line.dropFirst(3)), [])
      }
      mark =
        line.hasPrefix("<!-- ") && line.hasSuffix(" -->")
        ? String(line.dropFirst(5).dropLast(4)) : nil
    }
    return blocks
  }

  /// All commands of the blocks with a mark, with their expected output.
  func session(_ mark: String) -> Session {
    Session(blocks.filter { $0.mark == mark }.flatMap(\.lines))
  }

  /// The text of the first block with a mark, or nothing.
  func block(_ mark: String) -> String {
    (blocks.first { $0.mark == mark }?.lines ?? []).map { $0 + "\n" }.joined()
  }

  /// The first two columns of the table of commands.
  var commands: [String] {
    let lines = text.split(separator: "\n").map(String.init)
    return lines.filter { $0.hasPrefix("| `wormhole ") }
  }
}
