/** Chooses several entries of a list, which typing narrows. */
import { Combobox } from '@base-ui/react/combobox'
import { X } from 'lucide-react'
import { t } from '../i18n.ts'
import { Labels } from './form.tsx'

interface MultiSelectProps {
  readonly label: string
  readonly hint?: string
  readonly name?: string
  /** What may be chosen, by its translated name. */
  readonly options: ReadonlyMap<string, string>
  readonly chosen: readonly string[]
  onChoose(chosen: string[]): void
}

export function MultiSelect({ label, hint, name, options, chosen, onChoose }: MultiSelectProps) {
  const nameOption = (value: string) => options.get(value) ?? value
  return (
    <Combobox.Root
      multiple
      autoHighlight
      items={[...new Set([...options.keys(), ...chosen])]}
      itemToStringLabel={nameOption}
      value={[...chosen]}
      onValueChange={onChoose}
    >
      <Labels label={label} hint={hint} name={name}>
        {({ name: _, ...ids }) => (
          <Combobox.Chips className="flex min-h-8 flex-wrap items-center gap-1 rounded-md border border-edge bg-surface p-1">
            {chosen.map((value) => (
              <Combobox.Chip
                key={value}
                className="flex items-center gap-1 rounded bg-raised py-0.5 pr-0.5 pl-2 text-sm data-highlighted:bg-accent-wash"
              >
                {nameOption(value)}
                <Combobox.ChipRemove
                  aria-label={t('Remove {name}', { name: nameOption(value) })}
                  className="rounded p-0.5 text-quiet hover:text-ink"
                >
                  <X aria-hidden size={12} />
                </Combobox.ChipRemove>
              </Combobox.Chip>
            ))}
            <Combobox.Input
              {...ids}
              placeholder={t('Search')}
              className="h-6 min-w-24 flex-1 bg-transparent px-1.5 text-base placeholder:text-quiet"
            />
          </Combobox.Chips>
        )}
      </Labels>
      <Combobox.Portal>
        <Combobox.Positioner sideOffset={4} className="z-20">
          <Combobox.Popup className="max-h-64 w-(--anchor-width) overflow-y-auto rounded-md border border-line bg-surface p-1 shadow-xl">
            <Combobox.Empty className="px-2 py-1.5 text-quiet text-sm empty:hidden">
              {t('Nothing has this name.')}
            </Combobox.Empty>
            <Combobox.List>
              {(value: string) => (
                <Combobox.Item
                  key={value}
                  value={value}
                  className="flex cursor-pointer items-center justify-between gap-3 rounded px-2 py-1 data-highlighted:bg-accent-wash data-highlighted:text-accent"
                >
                  {nameOption(value)}
                  <Combobox.ItemIndicator aria-hidden>✓</Combobox.ItemIndicator>
                </Combobox.Item>
              )}
            </Combobox.List>
          </Combobox.Popup>
        </Combobox.Positioner>
      </Combobox.Portal>
    </Combobox.Root>
  )
}
