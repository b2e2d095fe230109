/** Reads an agent's YAML file: all of it, or every problem with its place. See docs/organizations.md, "Agents". */
import { readFileSync, statSync } from 'node:fs'
import { type AgentFile, agentFile } from '../../../schemas/accounts/agent.ts'
import { problemsOf } from '../../config/issues.ts'
import type { Problem } from '../../config/problem.ts'
import { readSource } from '../../config/source.ts'
import { FileProblems } from '../config/config.ts'

/** A persona of the greatest length, in any script, and everything else that there may be. */
const MAX_AGENT_FILE_BYTES = 256 * 1024

const refuse = (problems: readonly Problem[]) => new FileProblems('The agent file', problems)

function readText(path: string): string | { readonly refusal: string } {
  try {
    if (statSync(path).size > MAX_AGENT_FILE_BYTES)
      return { refusal: `It is over ${MAX_AGENT_FILE_BYTES} bytes.` }
    const text = readFileSync(path, 'utf8')
    return text.trim() === '' ? { refusal: 'The file is empty.' } : text
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return { refusal: code === 'ENOENT' ? 'There is no such file.' : `It cannot be read: ${message}.` }
  }
}

/** @throws FileProblems */
export function readAgentFile(path: string): AgentFile {
  const text = readText(path)
  if (typeof text !== 'string')
    throw refuse([{ file: path, line: 1, column: 1, field: '', message: text.refusal }])
  const source = readSource(text, path, null)
  if (source.problems.length > 0) throw refuse(source.problems)
  const parsed = agentFile.safeParse(source.value)
  if (parsed.success) return parsed.data
  const problems = problemsOf(parsed.error.issues, agentFile, source)
  throw refuse(problems.sort((a, b) => a.line - b.line || a.column - b.column))
}
