/** A name and what stands for it, as one line of a `<dl>`. */
import type { ReactNode } from 'react'
import { Panel } from './states.tsx'

export const Fact = ({ name, value }: { readonly name: string; readonly value: ReactNode }) => (
  <div className="grid grid-cols-[7rem_minmax(0,1fr)] gap-3 px-4 sm:grid-cols-[10rem_minmax(0,1fr)] py-1.5">
    <dt className="text-quiet text-sm">{name}</dt>
    <dd className="tabular min-w-0 break-words">{value}</dd>
  </div>
)

/** A panel of facts. */
export const FactPanel = ({ title, children }: Parameters<typeof Panel>[0]) => (
  <Panel title={title}>
    <dl className="py-1.5">{children}</dl>
  </Panel>
)
