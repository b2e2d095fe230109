/** Every operation of the management API, in the order of the reference. */
import type { z } from 'zod'
import { OPERATION_ROUTES, type OperationName } from '../routes.ts'
import type { Operation } from './operation.ts'
import * as operations from './operations.ts'

/** Each operation is exported under the name of its route. */
const byName: { readonly [Name in OperationName]: Operation<z.ZodObject, z.ZodType, Name> } = operations

export const OPERATIONS: readonly Operation[] = (Object.keys(OPERATION_ROUTES) as OperationName[]).map(
  (name) => byName[name],
)
