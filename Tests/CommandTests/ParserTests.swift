import TestTraits
import Testing
import WormholeCommandLine

@testable import WormholeCommand

/// The parser of command lines, and its suggestions for misspelt words.
@Suite(.blocking) struct ParserTests {
  private func read(_ words: String...) throws -> Invocation {
    guard case .verb(let invocation) = try Parser.parse(words, by: .wormhole) else {
      throw Failure.usage("it is not a verb")
    }
    return invocation
  }

  private func failure(_ words: String...) -> String? {
    do throws(Failure) {
      _ = try Parser.parse(words, by: .wormhole)
      return nil
    } catch {
      return error.sentence
    }
  }

  /// The value is the text after the first equal sign.
  @Test func aValueMayHaveEqualSigns() throws {
    let words = try read(
      "wake", "clock", "--register", "--env=K=a=b", "--env", "L==", "--directory=/a=b", "--",
      "true")
    #expect(words.values(.setting) == ["K=a=b", "L=="])
    #expect(words.value(.directory) == "/a=b")
    #expect(words.operands == ["clock"])
    #expect(words.command == ["true"])
  }

  @Test func aValueMayBeEmpty() throws {
    let words = try read("send", "--to=", "hello")
    #expect(words.value(.to) == "")
    #expect(words.operands == ["hello"])
    #expect(try read("send", "--to", "", "hello").value(.to) == "")
  }

  @Test func numbersAndADashAreNotOptions() throws {
    for word in ["-5", "-.5", "-0", "-"] {
      #expect(failure("put", "speed", word) == nil)
      #expect((try? read("put", "speed", word))?.operands == ["speed", word])
    }
    for word in ["-x", "--5", "-inf"] {
      #expect(failure("put", "speed", word)?.contains("there is no such option") == true, "\(word)")
    }
    #expect(try read("put", "speed", "--", "--5").operands == ["speed", "--5"])
  }

  /// After dashes in the first place, the verb is the first operand.
  @Test func aVerbMayFollowTheDashes() throws {
    let words = try read("--", "put", "speed", "--5")
    #expect(words.verb.name == "put")
    #expect(words.operands == ["speed", "--5"])
    #expect(try read("--json", "--", "list").operands == [])
  }

  /// The options of the program that a verb runs are the program's.
  @Test func optionsBehindTheDashesSetNoFormOfTheOutput() {
    func output(_ words: String...) -> [Bool] {
      let output = Parser.output(of: .wormhole, for: words)
      return [output.isJSON, output.isQuiet, output.isVerbose]
    }
    let options = ["--json", "--quiet", "--verbose"]
    #expect(output("lock", "door", "--", "program", "--json") == [false, false, false])
    for (index, option) in options.enumerated() {
      var expected = [false, false, false]
      expected[index] = true
      #expect(output("lock", option, "door", "--", "program", "--json", "--quiet") == expected)
      #expect(output("lock", "door", "--", option) == [false, false, false], "\(option)")
    }
  }

  /// A short word for an option with its value counts as the option.
  @Test func aTypeIsGivenOnce() throws {
    let write = ["defaults", "write", "s", "k"]
    for words in [["-int", "-string", "5"], ["--type", "json", "-string", "5"]] {
      let error = #expect(throws: Failure.self) { try Parser.parse(write + words, by: .wormhole) }
      #expect(error?.sentence == "cannot use '-string': '--type' is given already", "\(words)")
    }
    #expect(try read("defaults", "write", "s", "k", "-string", "5").value(.type) == "string")
  }

  /// Without a value on the line, the value comes on standard input, and the last word is the key.
  @Test func aKeyIsNoTruthValue() throws {
    for key in ["1", "no", "rows"] {
      #expect(failure("defaults", "write", "s", key, "-bool") == nil)
      let words = try? read("defaults", "write", "s", key, "-bool")
      #expect(words?.operands == ["write", "s", key])
    }
    let words = try read("defaults", "write", "s", "1", "no", "-bool")
    #expect(words.operands == ["write", "s", "1", "false"])
  }

  // MARK: Suggestions

  /// At most one wrong letter; from five letters on, at most two.
  @Test func aSuggestionDependsOnTheWordsLength() {
    #expect(Spelling.guess("pos", among: ["post"]) == "post")
    #expect(Spelling.guess("psot", among: ["post"]) == "post")
    #expect(Spelling.guess("psxt", among: ["post"]) == nil)
    #expect(Spelling.guess("wxtxh", among: ["watch"]) == "watch")
    #expect(Spelling.guess("wxxxh", among: ["watch"]) == nil)
  }

  @Test func theNearestWordIsSuggestedAndNoneOfTwoEquallyNear() {
    #expect(Spelling.guess("watch", among: ["match", "hatch"]) == nil)
    #expect(Spelling.guess("watchh", among: ["match", "watch"]) == "watch")
    #expect(Spelling.guess("watch", among: ["watch", "match"]) == "watch")
  }
}
