import { type Command, Option } from 'commander'
import { type Json, type JsonObject, printJson, printRecord, printTable } from './output.ts'
import type { Wiring } from './wiring.ts'

export const INVOCATION = 'npm run -s tollgate --'

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

/**
 * Makes `work` the action of a command that has its description and options already: adds `--json` and the
 * example, and prints the answer. `work` gets the arguments in order, then the options.
 */
export function answers<Given extends unknown[]>(
  { output }: Context,
  command: Command,
  example: string,
  work: (...given: Given) => Promise<Answer>,
): void {
  command
    .addOption(new Option('--json', 'print one JSON value'))
    .addHelpText('after', `\nExample:\n  ${INVOCATION} ${example}`)
    .action(async (...given: unknown[]) => {
      // After arguments and options commander gives the command itself.
      const { json, ...options } = command.opts<{ json?: boolean }>()
      // The form of the answer is no matter of the work, which may hand all its options on to an act.
      const answer = await work(...([...given.slice(0, -2), options] as Given))
      output.answer(json ? printJson(answer.json) : answer.text())
    })
}
