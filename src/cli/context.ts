import { type Argument, Help, Option, Command as PlainCommand } from 'commander'
import { type Json, type JsonObject, printJson, printRecord, printTable } from './output.ts'
import type { Wiring } from './wiring.ts'

const INVOCATION = 'npm run -s tollgate --'

/** Destination of answers and errors. */
export interface Output {
  answer(text: string): void
  error(text: string): void
  /** True when answers go to a terminal with colours, and colours are not disabled. */
  readonly isColoured: boolean
}

/** Dependencies of a command besides its own arguments. */
export interface Context {
  readonly wiring: Wiring
  readonly output: Output
  /** Sets exit code 1: the command succeeded, and its answer is no. */
  isNegativeAnswer(): void
}

/** An answer in both forms; the text is made on demand. */
export interface Answer {
  readonly json: Json
  text(): string
}

/** Answers one record, a field a line; `shown` is its form for readers. */
export const answerRecord = (json: JsonObject, shown: JsonObject = json): Answer => ({
  json,
  text: () => printRecord(shown),
})

/** Answers records in a table of these fields; `shown` is their form for readers. */
export const answerTable = (
  json: readonly JsonObject[],
  fields: readonly string[],
  shown: readonly JsonObject[] = json,
): Answer => ({ json, text: () => printTable(shown, fields) })

const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** Help in which every description begins with a capital letter, also those of commander. */
class CapitalizedHelp extends Help {
  override optionDescription = (option: Option) => {
    const text = super.optionDescription(option)
    return capitalize(option.mandatory ? `${text} (required)` : text)
  }
  override argumentDescription = (argument: Argument) => capitalize(super.argumentDescription(argument))
  override subcommandDescription = (command: PlainCommand) => capitalize(super.subcommandDescription(command))
  override commandDescription = (command: PlainCommand) => capitalize(super.commandDescription(command))
}

/** A command that answers. Its own commands are such ones too. */
export class Command extends PlainCommand {
  readonly #output: Pick<Output, 'answer'>

  constructor(output: Pick<Output, 'answer'>, name?: string) {
    super(name)
    this.#output = output
  }

  override createHelp(): Help {
    return Object.assign(new CapitalizedHelp(), this.configureHelp())
  }

  override createCommand(name?: string): Command {
    return new Command(this.#output, name)
  }

  /** Returns the group of commands of this name. */
  group(name: string): Command {
    return this.commands.find((command) => command.name() === name) as Command
  }

  /** Adds an example to the help: a command line behind the program's name. */
  example(words: string): this {
    return this.addHelpText('after', `\nExample:\n  ${INVOCATION} ${words}`)
  }

  /**
   * Makes `work` the action of the command, which has its description and options already: adds `--json`, and prints
   * the answer. `work` gets the arguments in order, then the options.
   */
  answers<Given extends unknown[]>(work: (...given: Given) => Promise<Answer>): this {
    this.addOption(new Option('--json', 'print one JSON value'))
    return this.action(async (...given: unknown[]) => {
      // After arguments and options commander gives the command itself.
      const { json, ...options } = this.opts<{ json?: boolean }>()
      // The form of the answer is no matter of the work, which may hand all its options on to an operation.
      const answer = await work(...([...given.slice(0, -2), options] as Given))
      this.#output.answer(json ? printJson(answer.json) : answer.text())
    })
  }
}
