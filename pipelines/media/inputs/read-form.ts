/**
 * Streams the files of a multipart form into the object store: none is held whole.
 * See docs/api-rules.md, "Files and link lifetimes".
 */
import { Failure } from '../../../schemas/failure.ts'
import { peekStream } from '../../../src/core/media/peeked.ts'
import type { FormFile, GatewayRequest } from '../../../src/http/handler.ts'
import { type AcceptedFiles, type InputStore, type StoredInput, storeInput } from './store-input.ts'
import type { Upload } from './uploads.ts'

/** The largest body of a form. See docs/api-rules.md, "Every endpoint". */
export const MAX_FORM_BYTES = 64 * 1024 * 1024
const MAX_FIELDS = 64
const MAX_FIELD_BYTES = 256 * 1024

interface FormRules {
  readonly accepted: AcceptedFiles
  /** The number of files that each field may have; other fields may have none. */
  readonly files: Readonly<Record<string, number>>
  readonly upload: Upload
  /** Checks the fields before a file, before the file is stored. @throws Failure that says what is wrong */
  readonly check?: (fields: ReadForm['fields']) => void
}

export interface ReadForm {
  /** In the order of the form. */
  readonly fields: ReadonlyArray<readonly [name: string, value: string]>
  readonly files: readonly FormInput[]
}

interface FormInput extends StoredInput {
  readonly field: string
}

/**
 * Reads a form; returns null if the body is not one. If it cannot be read or is cut off, removes what was stored of it.
 * @throws Failure that says what is wrong with the form
 */
export async function readForm(
  request: GatewayRequest,
  deps: InputStore,
  rules: FormRules,
): Promise<ReadForm | null> {
  const { form, requestId } = request
  const { upload } = rules
  if (!form) return null
  const taken: Array<FormInput | undefined> = []
  const counts = new Map<string, number>()
  let count = 0
  // The next file may begin while this one is still being written.
  const takeFile = async ({ field, name, content }: FormFile, before: ReadForm['fields']) => {
    const at = count++
    const { head, all } = await peekStream(content, 1)
    // Browsers also send an input without a chosen file.
    if (name === '' && head.length === 0) return
    counts.set(field, (counts.get(field) ?? 0) + 1)
    checkCount(field, counts.get(field)!, rules)
    rules.check?.(before)
    const incoming = { upload, requestId, number: at + 1, field, name, content: all }
    taken[at] = { field, ...(await storeInput(deps, incoming, rules.accepted)) }
  }
  const maxFiles = Object.values(rules.files).reduce((sum, count) => sum + count, 0)
  const limits = { maxFields: MAX_FIELDS, maxFieldBytes: MAX_FIELD_BYTES, maxFiles }
  try {
    const fields = await form.read(limits, takeFile)
    return { fields, files: taken.filter((file) => file !== undefined) }
  } catch (error) {
    await upload.discard()
    throw error
  }
}

function checkCount(field: string, count: number, { files }: FormRules): void {
  const most = Object.hasOwn(files, field) ? files[field]! : 0
  if (count <= most) return
  const message =
    most === 0
      ? `The form brings a file in ${JSON.stringify(field)}; files go into ${Object.keys(files).join(', ')}.`
      : `The form brings more than ${most} file${most === 1 ? '' : 's'} in ${field}.`
  throw new Failure('invalid_request', message)
}
