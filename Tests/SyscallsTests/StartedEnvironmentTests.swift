import TestTraits
import Testing
import WormholeSyscalls

/// The environment of programs that are started.
@Suite(.blocking) struct StartedEnvironmentTests {
  private func environment(
    setting settings: [String], without unwanted: [String] = [], withoutPrefix prefix: String? = nil
  ) -> [String] {
    let all = Processes.environment(
      setting: settings, without: unwanted, withoutPrefix: prefix)
    return all.map { setting in
      String(decoding: setting.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
    }
  }

  @Test func aSettingReplacesItsOwnVariableAlone() throws {
    let path = try #require(Processes.environment("PATH"))
    let longer = environment(setting: ["PATH=a=b"])
    #expect(longer.filter { $0.hasPrefix("PATH=") } == ["PATH=a=b"])
    #expect(longer.last == "PATH=a=b")
    let shorter = environment(setting: ["PAT=a"])
    #expect(shorter.filter { $0.hasPrefix("PATH=") } == ["PATH=\(path)"])
  }

  @Test func unwantedVariablesAreLeftOut() {
    let named = environment(setting: [], without: ["PATH"])
    #expect(!named.contains { $0.hasPrefix("PATH=") })
    let begun = environment(setting: ["PATH=a"], withoutPrefix: "PA")
    #expect(begun.filter { $0.hasPrefix("PA") } == ["PATH=a"])
  }
}
