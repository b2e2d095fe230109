/** Serves the files that the other dialects link to: `GET /files/{name}`. */

import {
  type Dialect,
  failuresAs,
  type OpenedRequest,
  type ReceivedRequest,
  SimulatedFailure,
  type WholeAnswer,
} from '../dialect.ts'
import { findMediaType, readBytes, type ShelvedFile } from '../media/file-shelf.ts'
import { laterFault } from '../tasks/task-book.ts'

export const files: Dialect = {
  name: 'files',
  endpoints: [{ method: 'GET', path: /^\/files\/([A-Za-z0-9_.-]{1,120})$/, open }],
  failure: failuresAs(({ message }) => ({ error: message })),
}

function open({ path, world }: ReceivedRequest): OpenedRequest {
  const shelved = world.files.find(path[1] as string)
  if (shelved === null) throw new SimulatedFailure(404, 'not_found', 'There is no such file.')
  const { name, directives } = shelved
  return {
    directives: [laterFault(directives.file_fault, directives, `file ${name}`)],
    answer: () => fileAnswer(shelved),
  }
}

function fileAnswer({ file }: ShelvedFile): WholeAnswer {
  const headers = { 'content-type': findMediaType(file) }
  return { kind: 'whole', status: 200, headers, body: readBytes(file), tokens: 0 }
}
