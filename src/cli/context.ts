import { Option, Command as PlainCommand } from 'commander'
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

/** Answers a table; `shown` has the records in their form for readers. */
export const answerTable = (json: readonly JsonObject[], shown: readonly JsonObject[] = json): Answer => ({
  json,
  text: () => printTable(shown),
})

/** A command that prints an answer. */
export class Command extends PlainCommand {
  override createCommand(name?: string): Command {
    return new Command(name)
  }

  /** Returns the group of commands of this name. */
  group(name: string): Command {
    return this.commands.find((command) => command.name() === name) as Command
  }

  /** Adds an example to the help: a command line without the program's name. */
  example(words: string): this {
    return this.addHelpText('after', `\nExample:\n  ${INVOCATION} ${words}`)
  }

  /**
   * Makes `work` the action of the command, which has its description and options already: adds `--json`, and prints
   * the answer. `work` gets the arguments in order, then the options.
   */
  answers<Given extends unknown[]>(work: (...given: Given) => Promise<Answer>): this {
    this.addOption(new Option('--json', 'Print one JSON value'))
    return this.action(async (...given: unknown[]) => {
      // After arguments and options commander gives the command itself.
      const { json, ...options } = this.opts<{ json?: boolean }>()
      // The form of the answer does not concern the work, which may pass all its options on to an operation.
      const answer = await work(...([...given.slice(0, -2), options] as Given))
      this.configureOutput().writeOut?.(json ? printJson(answer.json) : answer.text())
    })
  }
}
