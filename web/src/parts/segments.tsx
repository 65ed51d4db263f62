// SPDX-License-Identifier: Apache-2.0
interface Props<T extends string> {
  label: string;
  options: readonly { value: T; label: string }[];
  value: T;
  onValue: (value: T) => void;
}

// A choice of few: radio buttons that look like one bar.
export function Segments<T extends string>({ label, options, value, onValue }: Props<T>) {
  return (
    <fieldset class="segments">
      <legend class="hidden">{label}</legend>
      {options.map((option) => (
        <label key={option.value} class={option.value === value ? "segment segment-on" : "segment"}>
          <input type="radio" class="hidden" name={label} value={option.value} checked={option.value === value}
            onChange={() => onValue(option.value)} />
          {option.label}
        </label>
      ))}
    </fieldset>
  );
}
