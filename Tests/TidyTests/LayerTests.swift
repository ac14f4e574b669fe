import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Inside a module a folder uses only the folders below it.
@Suite(.blocking) struct LayerTests {
  private static let below = [
    "WormholeContainerStorage": ["WormholeSyscalls", "WormholePropertyLists"],
    "Wormhole": ["WormholeSyscalls", "WormholePropertyLists", "WormholeContainerStorage"],
  ]

  @Test(arguments: below.keys.sorted())
  func noFolderUsesAFolderAbove(_ module: String) throws {
    let files = try House.files().filter { $0.isSource && $0.isSwift }
    let lower = files.filter { Self.below[module]?.contains($0.room) == true }
    let own = files.filter { $0.room == module }
    #expect(own.count > 90, "the files were found")
    for finding in try Layers().upwardReferences(in: module, own, below: lower) {
      Issue.record("\(finding)")
    }
  }

  private func findings(_ planted: String) throws -> [Finding] {
    let files = [
      SourceFile(
        "Sources/WormholeContainerStorage/Slot/Slot.swift",
        "class Slot {}\nextension Container {\n  func slot() {}\n  var slots: Int { 0 }\n}\n"),
      SourceFile(
        "Sources/WormholeContainerStorage/Container/Container.swift", "class Container {}\n"),
      SourceFile("Sources/WormholeContainerStorage/Files/Planted.swift", planted + "\n"),
    ]
    return try Layers().upwardReferences(in: "WormholeContainerStorage", files, below: [])
  }

  @Test(arguments: [
    "struct Planted { let slot: Slot }", "func use(_ one: Any) { one.slot() }",
    "func use(_ one: Any) { one.slots }", "extension Container {}",
  ])
  func anUpwardReferenceIsFound(_ planted: String) throws {
    #expect(try findings(planted).count == 1)
  }

  @Test(arguments: [
    "// A Slot.", "private struct Slot {}\nlet slot: Slot", "let text = \"Slot\"",
    "func slot() {}\nfunc use() { slot() }", "func use(_ slot: () -> Void) { slot() }",
  ])
  func aNameThatOnlyLooksLikeOneIsNotFound(_ harmless: String) throws {
    #expect(try findings(harmless) == [])
  }

  @Test func aFolderThatIsNotALayerIsFound() throws {
    let file = SourceFile("Sources/WormholeContainerStorage/Elsewhere/A.swift", "struct A {}\n")
    #expect(
      try Layers().upwardReferences(in: "WormholeContainerStorage", [file], below: []).count == 1)
  }

  @Test func theListNamesEveryModuleWithItsFolders() throws {
    let root = try Descriptor.open(path: Programs.source, [.readOnly, .directory])
    let sources = try root.open("Sources", [.readOnly, .directory]).names().map { ($0, "Sources") }
    var modules: [String: Set<String>] = [:]
    for (name, parent) in sources + SourceFile.tools.map({ ($0, "Tests") }) {
      let module = try root.open("\(parent)/\(name)", [.readOnly, .directory])
      // A catalogue, and what C has beside its sources, are no folders of the module.
      let folders = try module.names().filter { !$0.contains(".") && $0 != "include" }
      modules[name] = Set(folders)
    }
    #expect(try Layers().folders.mapValues(Set.init) == modules)
  }
}
