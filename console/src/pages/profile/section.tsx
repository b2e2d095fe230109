/** The frame of the parts of the page, and the data that they share. */
import type { ReactNode } from 'react'
import type { AnswerOf } from '../../../../schemas/management/operation.ts'
import type { showSecurity } from '../../../../schemas/management/people/profile.ts'
import { Panel } from '../../ui/states.tsx'

export type Security = AnswerOf<typeof showSecurity>

/** Where it is read. */
export const SECURITY = '/me/security'

/** A part of the page: what it is about, and its controls. */
export const Section = ({
  title,
  note,
  children,
}: {
  readonly title: string
  readonly note?: string
  readonly children: ReactNode
}) => (
  <Panel title={title}>
    <div className="flex flex-col gap-4 p-4">
      {note && <p className="max-w-prose text-quiet">{note}</p>}
      {children}
    </div>
  </Panel>
)
