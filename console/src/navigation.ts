/** The pages of the console by group, and who sees each. Their names are translated where they are shown. */
import {
  Activity,
  BookOpen,
  Bot,
  Boxes,
  Building2,
  ChartColumn,
  CircleUser,
  CreditCard,
  FlaskConical,
  HeartPulse,
  History,
  House,
  KeyRound,
  ListTodo,
  Logs,
  type LucideIcon,
  ScrollText,
  ShieldCheck,
  Tags,
  Terminal,
  UserCog,
  Users,
  Wallet,
  Waypoints,
  Webhook,
} from 'lucide-react'
import type { Access, Session } from './api/session.ts'

interface PageLink {
  readonly path: string
  readonly icon: LucideIcon
  readonly name: string
  isFor(session: Session, account: Access): boolean
}

interface PageGroup {
  readonly title: string
  readonly pages: readonly PageLink[]
}

const everyone = () => true

/** For everyone with a role in the installation. */
const staff = ({ user }: Session) => user.installation_role !== null

/** For auditors and everyone with one of these roles. */
const readers =
  (...roles: readonly Access['role'][]) =>
  (_: Session, { role }: Access) =>
    role === 'auditor' || roles.includes(role)

export const NAVIGATION: readonly PageGroup[] = [
  {
    title: 'Account',
    pages: [
      { path: '/', icon: House, name: 'Home', isFor: everyone },
      { path: '/models', icon: Boxes, name: 'Models', isFor: everyone },
      { path: '/status', icon: HeartPulse, name: 'Status', isFor: everyone },
      {
        path: '/playground',
        icon: FlaskConical,
        name: 'Playground',
        isFor: (_, { role }) => role === 'owner' || role === 'admin',
      },
      { path: '/calls', icon: ScrollText, name: 'Calls', isFor: everyone },
      { path: '/usage', icon: ChartColumn, name: 'Usage', isFor: everyone },
      { path: '/tasks', icon: ListTodo, name: 'Tasks', isFor: readers('owner', 'admin') },
      { path: '/knowledge', icon: BookOpen, name: 'Knowledge', isFor: readers('owner', 'admin') },
      { path: '/keys', icon: KeyRound, name: 'Keys', isFor: (_, { role }) => role !== 'billing' },
      { path: '/billing', icon: Wallet, name: 'Billing', isFor: readers('owner', 'billing') },
      { path: '/webhooks', icon: Webhook, name: 'Webhooks', isFor: readers('owner') },
      { path: '/tokens', icon: Terminal, name: 'Management tokens', isFor: readers('owner') },
      { path: '/audit', icon: History, name: 'Audit', isFor: readers('owner', 'admin') },
    ],
  },
  {
    title: 'Organization',
    pages: [
      { path: '/members', icon: Users, name: 'Members', isFor: (_, { kind }) => kind === 'organization' },
      {
        path: '/agents',
        icon: Bot,
        name: 'Agents',
        isFor: (session, account) =>
          account.kind === 'organization' && readers('owner', 'admin')(session, account),
      },
    ],
  },
  {
    title: 'Installation',
    pages: [
      { path: '/overview', icon: Activity, name: 'Overview', isFor: staff },
      { path: '/all-calls', icon: Logs, name: 'All calls', isFor: staff },
      { path: '/payments', icon: CreditCard, name: 'Payments', isFor: staff },
      { path: '/accounts', icon: Building2, name: 'Accounts', isFor: staff },
      { path: '/channels', icon: Waypoints, name: 'Channels', isFor: staff },
      { path: '/catalog', icon: Tags, name: 'Catalog', isFor: staff },
      { path: '/integrity', icon: ShieldCheck, name: 'Integrity', isFor: staff },
      { path: '/users', icon: UserCog, name: 'Users', isFor: staff },
    ],
  },
  {
    title: 'You',
    pages: [{ path: '/profile', icon: CircleUser, name: 'Profile & security', isFor: everyone }],
  },
]
