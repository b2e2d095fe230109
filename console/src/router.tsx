/** The routes of the console. Each page is a separate chunk, loaded when it is first opened. */
import { type QueryClient, useQuery } from '@tanstack/react-query'
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  Outlet,
  redirect,
} from '@tanstack/react-router'
import { type FunctionComponent, useState } from 'react'
import { requestEarly } from './api/client.ts'
import { type Session, sessionQuery } from './api/session.ts'
import { readZoneName } from './format.ts'
import { useLanguage } from './i18n.ts'
import {
  ALL_CALLS_SEARCH,
  CALL_SEARCH,
  readAllCallsSearch,
  readCallSearch,
  toListInput,
  toWholeListInput,
} from './pages/calls/query.ts'
import { printSearch, readSearch, validateTexts } from './search.ts'
import { PageLoader } from './ui/page-loader.tsx'
import { Shell } from './ui/shell.tsx'
import { PageError, Skeleton } from './ui/states.tsx'

interface RouterContext {
  readonly queries: QueryClient
}

type Load<Name extends string> = () => Promise<Record<Name, FunctionComponent>>

/** Makes the component of a page, which loads when it is first opened and renders again in another language. */
function lazyPage<Name extends string>(load: Load<Name>, name: Name) {
  let Page: FunctionComponent | null = null
  const loadPage = async () => {
    Page = (await load())[name]
  }
  // biome-ignore lint/correctness/noComponentHookFactories: it runs once for each route while this module loads, so React never meets a new component for the same page.
  const Localized = () => {
    useLanguage()
    const [, renderAgain] = useState(false)
    return Page === null ? <PageLoader load={loadPage} onLoaded={() => renderAgain(true)} /> : <Page />
  }
  // A page that cannot be loaded says so when it is opened.
  return Object.assign(Localized, { preload: () => loadPage().catch(() => undefined) })
}

const accountSearch = validateTexts('account')

const root = createRootRouteWithContext<RouterContext>()({})

/** Reads the session, if there is one: without its CSRF token the service refuses a signed-in browser here too. */
const beforeSignIn = createRoute({
  getParentRoute: () => root,
  id: 'before-sign-in',
  beforeLoad: async ({ context }) => {
    await context.queries.ensureQueryData(sessionQuery)
  },
})

const signIn = createRoute({
  getParentRoute: () => beforeSignIn,
  path: '/sign-in',
  validateSearch: ({ next }: Record<string, unknown>): { next?: string } =>
    typeof next === 'string' && next.startsWith('/') && !next.startsWith('//') ? { next } : {},
  component: lazyPage(() => import('./pages/sign-in/sign-in.tsx'), 'SignIn'),
})

const signUp = createRoute({
  getParentRoute: () => beforeSignIn,
  path: '/sign-up',
  component: lazyPage(() => import('./pages/sign-in/sign-up.tsx'), 'SignUp'),
})

const providerReturn = createRoute({
  getParentRoute: () => beforeSignIn,
  path: '/sign-in/oidc/$id',
  component: lazyPage(() => import('./pages/sign-in/provider-return.tsx'), 'ProviderReturn'),
})

const recovery = createRoute({
  getParentRoute: () => beforeSignIn,
  path: '/recovery',
  component: lazyPage(() => import('./pages/sign-in/recovery.tsx'), 'Recovery'),
})

const confirmEmail = createRoute({
  getParentRoute: () => beforeSignIn,
  path: '/confirm-email',
  component: lazyPage(() => import('./pages/sign-in/confirm-email.tsx'), 'ConfirmEmail'),
})

/** Pages that need a session. */
const signedIn = createRoute({
  getParentRoute: () => root,
  id: 'signed-in',
  validateSearch: accountSearch,
  beforeLoad: async ({ context, location }) => {
    const session = await context.queries.ensureQueryData(sessionQuery)
    if (session === null) throw redirect({ to: '/sign-in', search: { next: location.href } })
  },
  component: Shell,
})

/** Pages that need no session, and that have the navigation where there is one. */
const forAnyone = createRoute({
  getParentRoute: () => root,
  id: 'for-anyone',
  validateSearch: accountSearch,
  beforeLoad: async ({ context }) => {
    await context.queries.ensureQueryData(sessionQuery)
  },
  component: () => (useQuery(sessionQuery).data ? <Shell /> : <Outlet />),
})

const status = createRoute({
  getParentRoute: () => forAnyone,
  path: '/status',
  component: lazyPage(() => import('./pages/status/status.tsx'), 'Status'),
})

/** A page has been opened: the next one can ask for its data by itself, as its frame is there. */
let isOpen = false

/** Makes the loader of a page: if it is the first one, asks for its data while its code is loading. */
const askEarly =
  (ask?: (accountId: string, search: Record<string, unknown>) => void) =>
  ({ context, location }: { context: RouterContext; location: { search: object } }): void => {
    if (isOpen) return
    isOpen = true
    const accounts = context.queries.getQueryData<Session | null>(sessionQuery.queryKey)?.accounts
    const search = { ...location.search }
    const { account = accounts?.[0]?.account_id } = accountSearch(search)
    if (account !== undefined) ask?.(account, search)
  }

/** Makes the route of a page that needs a session; its address keeps these search parameters. */
const createPage = <Path extends string, Name extends string, Texts extends string = ''>(
  path: Path,
  load: Load<Name>,
  name: Name,
  texts: Texts = '' as Texts,
  ask?: Parameters<typeof askEarly>[0],
) =>
  createRoute({
    getParentRoute: () => signedIn,
    path,
    validateSearch: validateTexts(texts),
    loader: askEarly(ask),
    component: lazyPage(load, name),
  })

const home = createPage(
  '/',
  () => import('./pages/home.tsx'),
  'Home',
  '',
  (account_id) => requestEarly('showHome', { account_id, timezone: readZoneName() }),
)

const keys = createRoute({
  getParentRoute: () => signedIn,
  path: '/keys',
  validateSearch: (search: Record<string, unknown>): { create?: true; key?: string } => ({
    ...validateTexts('key')(search),
    ...(search.create === true && { create: true }),
  }),
  loader: askEarly((account_id) => requestEarly('listKeys', { account_id } as never)),
  component: lazyPage(() => import('./pages/keys/keys.tsx'), 'Keys'),
})

const calls = createPage(
  '/calls',
  () => import('./pages/calls/calls.tsx'),
  'Calls',
  CALL_SEARCH,
  (accountId, search) => requestEarly('listCalls', toListInput(accountId, readCallSearch(search))),
)

const profile = createPage('/profile', () => import('./pages/profile/profile.tsx'), 'Profile')

const members = createPage('/members', () => import('./pages/members/members.tsx'), 'Members')

const audit = createPage('/audit', () => import('./pages/audit.tsx'), 'Audit', 'action scope period from to')

const accounts = createPage(
  '/accounts',
  () => import('./pages/accounts/accounts.tsx'),
  'Accounts',
  'search open',
)

const models = createPage('/models', () => import('./pages/models/models.tsx'), 'Models', 'q model')

const playground = createPage(
  '/playground',
  () => import('./pages/playground/playground.tsx'),
  'Playground',
  'model',
)

const usage = createPage(
  '/usage',
  () => import('./pages/usage/usage.tsx'),
  'Usage',
  'period from to by key_id scope',
)

const tasks = createPage(
  '/tasks',
  () => import('./pages/tasks/tasks.tsx'),
  'Tasks',
  'kind state scope task period from to',
)

const overview = createPage('/overview', () => import('./pages/overview/overview.tsx'), 'Overview')

const catalog = createPage('/catalog', () => import('./pages/catalog/catalog.tsx'), 'Catalog')

const allCalls = createPage(
  '/all-calls',
  () => import('./pages/calls/calls.tsx'),
  'AllCalls',
  ALL_CALLS_SEARCH,
  (_, search) => requestEarly('listAllCalls', toWholeListInput(readAllCallsSearch(search))),
)

const allPayments = createPage(
  '/payments',
  () => import('./pages/all-payments.tsx'),
  'AllPayments',
  'search state period from to',
)

const integrity = createPage('/integrity', () => import('./pages/integrity/integrity.tsx'), 'Integrity')

const agents = createPage('/agents', () => import('./pages/agents/agents.tsx'), 'Agents', 'agent')

const knowledge = createPage(
  '/knowledge',
  () => import('./pages/knowledge/knowledge.tsx'),
  'Knowledge',
  'base page search',
)

const billing = createPage(
  '/billing',
  () => import('./pages/billing/billing.tsx'),
  'Billing',
  'payment saved month day kind search',
)

const webhooks = createPage(
  '/webhooks',
  () => import('./pages/webhooks/webhooks.tsx'),
  'Webhooks',
  'scope endpoint state delivery period from to',
)

const tokens = createPage('/tokens', () => import('./pages/tokens/tokens.tsx'), 'Tokens', 'scope')

const users = createPage('/users', () => import('./pages/users/users.tsx'), 'Users', 'search')

const channels = createPage('/channels', () => import('./pages/channels.tsx'), 'Channels', 'channel')

const notFound = createPage('$', () => import('./pages/not-found.tsx'), 'NotFound')

const routeTree = root.addChildren([
  beforeSignIn.addChildren([signIn, signUp, providerReturn, recovery, confirmEmail]),
  forAnyone.addChildren([status]),
  signedIn.addChildren([
    home,
    calls,
    models,
    playground,
    usage,
    tasks,
    keys,
    billing,
    webhooks,
    tokens,
    members,
    agents,
    knowledge,
    audit,
    overview,
    allCalls,
    allPayments,
    catalog,
    integrity,
    accounts,
    channels,
    users,
    profile,
    notFound,
  ]),
])

export const makeRouter = (queries: QueryClient) =>
  createRouter({
    routeTree,
    basepath: '/console',
    context: { queries },
    defaultPreload: 'intent',
    scrollRestoration: true,
    parseSearch: readSearch,
    stringifySearch: printSearch,
    defaultPendingComponent: () => <Skeleton />,
    defaultErrorComponent: PageError,
  })

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof makeRouter>
  }
}
