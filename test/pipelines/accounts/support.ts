/** The endpoints of balance, billing, usage and models, for a caller who has authenticated. */

import { answerWithBalance } from '../../../pipelines/accounts/balance.ts'
import {
  answerWithCosts,
  answerWithGrants,
  answerWithSubscription,
  type BillingUsageDeps,
  findCosts,
  findSpent,
  type GrantDeps,
  readDays,
} from '../../../pipelines/accounts/billing.ts'
import {
  answerWithCatalog,
  answerWithContentModel,
  answerWithContentModels,
  answerWithModel,
  answerWithModels,
  type CatalogDeps,
  type ModelsDeps,
} from '../../../pipelines/accounts/model-lists.ts'
import { answerWithUsage, findUsage, readWindow, type UsageDeps } from '../../../pipelines/accounts/usage.ts'
import type { Caller } from '../../../pipelines/calls/authenticate.ts'
import type { AllowedModels } from '../../../src/core/routing/catalog.ts'
import { NO_PARAMS } from '../../../src/http/router.ts'
import { replyTo } from '../../support/reply-to.ts'

type Known = Caller['known']
type Reader = Pick<Known, 'key' | 'account'>
type Query = { readonly query: string }

export const balance = (
  known: Pick<Known, 'view' | 'cap'> & Partial<Pick<Known, 'budgets'>>,
  submittedAt = Date.now(),
) => replyTo({ budgets: [], ...known }, { submittedAt }, answerWithBalance())

/** While PostgreSQL is away. */
const AWAY: GrantDeps = { keys: { show: () => Promise.reject(new Error('away')) } }

export const billingSubscription = (known: Pick<Known, 'key' | 'view' | 'cap'>, deps = AWAY) =>
  replyTo(known, {}, findSpent(deps), answerWithSubscription())

export const creditGrants = (known: Pick<Known, 'key' | 'view' | 'cap'>, deps = AWAY) =>
  replyTo(known, {}, findSpent(deps), answerWithGrants())

export const billingUsage = (deps: BillingUsageDeps) => (known: Reader, request: Query) =>
  replyTo(known, request, readDays(deps), findCosts(deps), answerWithCosts())

export const usage = (deps: UsageDeps) => (known: Reader, request: Query) =>
  replyTo(known, request, readWindow(deps), findUsage(deps), answerWithUsage())

const allowed = (caller: AllowedModels) => caller as Reader

const presenting = (headers: Readonly<Record<string, string>>) => (name: string) => headers[name] ?? ''

export const models =
  (deps: ModelsDeps) =>
  (caller: AllowedModels, query = '', headers: Readonly<Record<string, string>> = {}) =>
    replyTo(allowed(caller), { query, header: presenting(headers) }, answerWithModels(deps))

const paramsOf = (model: string) => ({ ...NO_PARAMS, model })

export const model =
  (deps: ModelsDeps) =>
  (caller: AllowedModels, name: string, headers: Readonly<Record<string, string>> = {}) =>
    replyTo(allowed(caller), { params: paramsOf(name), header: presenting(headers) }, answerWithModel(deps))

export const contentModels = (deps: ModelsDeps) => (caller: AllowedModels, query: string) =>
  replyTo(allowed(caller), { query }, answerWithContentModels(deps))

export const contentModel = (deps: ModelsDeps) => (caller: AllowedModels, name: string) =>
  replyTo(allowed(caller), { params: paramsOf(name) }, answerWithContentModel(deps))

export const publicModels = (deps: CatalogDeps) => () => replyTo({}, {}, answerWithCatalog(deps))
