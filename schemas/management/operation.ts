/**
 * An operation of the management API, described for HTTP, the console, the command line and the reference.
 * `pipelines/management` implements it.
 */
import { z } from 'zod'
import type { MemberRole } from '../accounts/organization.ts'
import type { NamedSchema } from '../endpoints/endpoint.ts'
import type { FailureCode } from '../failure.ts'
import { type Method, OPERATION_ROUTES, type OperationName, type OperationParameter } from '../routes.ts'

export const SCOPES = ['read', 'keys', 'accounts', 'billing', 'knowledge', 'admin'] as const
/** Permissions of a management token. */
export type Scope = (typeof SCOPES)[number]

/** The role of a user in an account. A user owns their personal account. */
export type AccountRole = MemberRole

export const INSTALLATION_ROLES = ['operator', 'auditor'] as const
/** The role of a user in the installation. An operator may do everything, an auditor read everything but secrets. */
export type InstallationRole = (typeof INSTALLATION_ROLES)[number]

/**
 * The permitted callers: everyone, every signed-in user, those who have one of these roles in the account that the input names, or
 * only operators. An operator may always call, an auditor whatever reads no secret.
 */
type Permission = 'everyone' | 'signed-in' | 'operators' | readonly AccountRole[]

/** An operation as a command of the command line. Fields are named in one text. */
export interface CommandForm {
  /** Such as `wallet topup`. Operations with the same words are one command: the options decide which one runs. */
  readonly words: string
  /** Default: the summary of the operation. */
  readonly summary?: string
  /** Fields that are arguments. Default: the parameters of the path that have no name here. */
  readonly args?: string
  /** Fields that are options. Default: all but the arguments. */
  readonly options?: string
  /** Options that must be given although the operation has a default. */
  readonly required?: string
  /** Names of options, where the name does not follow from the field. */
  readonly names?: Readonly<Record<string, string>>
  /** Values of fields that are not given. */
  readonly values?: Readonly<Record<string, unknown>>
  /** Options without a value: what each does, and the fields that it stands for. */
  readonly flags?: Readonly<Record<string, readonly [text: string, values: object]>>
  /** Describes the option `--by`: the personal account in whose name the operation runs. */
  readonly by?: string
  /**
   * Says in one sentence what it deletes or ends, or whose calls it refuses: the command asks first. A name in braces is a field
   * of the input, or of what it is about. `TYPED_TO_CONFIRM` says whether a `y` is enough.
   */
  readonly effect?: string
  /** The end of a command line, to show how; ids and required options come before it. */
  readonly example?: string
  /** Fields of the answer, or of each of its entries, that people see. Default: all. */
  readonly columns?: string
  /** Words for fields that are null. */
  readonly nulls?: Readonly<Record<string, string>>
  /** Entries after which a list ends, unless `--limit` says another number. */
  readonly limit?: number
}

interface Description<Input extends z.ZodObject, Answer extends z.ZodType> {
  readonly summary: string
  readonly details?: string
  /** The parameters of the path and those of the query or the fields of the JSON body, in one object. */
  readonly input: Input
  readonly answer: NamedSchema & { readonly schema: Answer }
  /** The scope that a management token needs. */
  readonly scope: Scope
  readonly allows: Permission
  /** Needs a sign-in within the last ten minutes. */
  readonly isSensitive?: true
  /** Answers with a secret: auditors may not call it. */
  readonly isSecret?: true
  /**
   * Creates or moves money: takes an Idempotency-Key. `by-operation`: the operation itself keeps the key, because it waits for more
   * than the database.
   */
  readonly isIdempotent?: true | 'by-operation'
  /** Answers with a page: HTML text. */
  readonly isPage?: true
  /** Answers with server-sent events: the schema of the answer is that of their data. */
  readonly isStream?: true
  /** Takes files as a multipart form: the input is in the path and the query. */
  readonly isUpload?: true
  /** Status of the answer. Default: 200. */
  readonly status?: number
  /** Absent: no command runs it, or one that is written by hand. */
  readonly commands?: readonly CommandForm[]
  /** Besides those that follow from the rest of the description. */
  readonly failures?: readonly FailureCode[]
}

export interface Operation<
  Input extends z.ZodObject = z.ZodObject,
  Answer extends z.ZodType = z.ZodType,
  Name extends OperationName = OperationName,
> extends Description<Input, Answer> {
  readonly name: Name
  readonly method: Method
  /** Below `MANAGEMENT_PATH`; a part in braces is a field of the input. */
  readonly path: string
}

/**
 * Describes the operation that has this route, with the types of its schemas. Its input has no other fields than those
 * that it describes.
 */
export function operation<
  Name extends OperationName,
  Input extends z.ZodObject<Record<OperationParameter<Name>, z.ZodType>>,
  Answer extends z.ZodType,
>(name: Name, description: Description<Input, Answer>): Operation<Input, Answer, Name> {
  const [method, path] = OPERATION_ROUTES[name]
  const input = description.input.strict() as z.ZodObject as Input
  return { ...description, name, method, path, input }
}

export type InputOf<O extends Operation> = z.input<O['input']>
export type AnswerOf<O extends Operation> = z.output<O['answer']['schema']>

const MAX_PAGE_ENTRIES = 200
const DEFAULT_PAGE_ENTRIES = 50

/** Fields of the input of every list. */
export const pageInput = {
  limit: z.coerce.number().int().min(1).max(MAX_PAGE_ENTRIES).default(DEFAULT_PAGE_ENTRIES),
  cursor: z.string().max(200).optional().describe('`next_cursor` of the page before.'),
}

/** Returns the schema of a page of entries. */
export const toPageSchema = <Entry extends z.ZodType>(entry: Entry) =>
  z.object({
    object: z.literal('list'),
    data: z.array(entry),
    has_more: z.boolean(),
    next_cursor: z.string().nullable(),
  })

/** Returns the schema of a list that is answered whole: it has the fields of a page, and is the only one. */
export const toListSchema = <Entry extends z.ZodType>(entry: Entry) =>
  z.object({
    object: z.literal('list'),
    data: z.array(entry),
    has_more: z.literal(false),
    next_cursor: z.null(),
  })

/** Returns whether JavaScript knows the name, and the engines may. */
function isTimeZone(zone: string): boolean {
  try {
    return /^[A-Za-z][\w/+-]{0,63}$/.test(zone) && Intl.DateTimeFormat('en', { timeZone: zone }) !== null
  } catch {
    return false
  }
}

export const timezone = z
  .string()
  .refine((zone) => isTimeZone(zone), 'is not a time zone such as Europe/Berlin')
  .default('UTC')
  .describe('In which days begin.')

/** An amount in an answer. */
export const amountText = z.string().describe('Credits, as a decimal number.')
export const instantText = z.iso.datetime().describe('RFC 3339, UTC.')

/** Limits a list to entries of a time. */
export const timeInput = {
  since: instantText.optional().describe('Only from this time on.'),
  until: instantText.optional().describe('Only before this time.'),
}
